"""[optical_switch.ssh] of the configuration file, the files that it names, and how `check` reports them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import random
from pathlib import Path
from textwrap import dedent

import asyncssh
import pytest

import blast_controller
from blast_base.extras import how_to_install
from blast_client.cli.command import main
from blast_controller.configuration.config import Config, ConfigError, OpticalSwitchSection
from blast_controller.configuration.reading import parse
from blast_controller.configuration.reload import plan_reload
from blast_controller.configuration.switch_access import check_switch_files, read_access
from tests.blast_controller.configuration.test_access_config import RACK
from tests.support.controller.tl1 import scripted
from tl1_driver.driver import SshSection, Tl1Access
from tl1_driver.protocol.errors import SwitchUnreachableError
from tl1_driver.ssh import Ssh
from tl1_driver.transport import Tcp, Tl1Transport

SWITCH = dedent("""
    [[optical_switch]]
    name = "ocs1"
    address = "ocs1.example.org:22"
    inputs = 8
    outputs = 8
    """)
OF = "the table ssh of the optical switch ocs1 "


def text(table: str = "") -> str:
    return SWITCH + (f"[optical_switch.ssh]\n{table}\n" if table else "") + RACK


def config(table: str = "") -> Config:
    return parse(text(table))


def switch(table: str = "") -> OpticalSwitchSection:
    return config(table).optical_switch[0]


def way_of(section: OpticalSwitchSection) -> Tl1Transport:
    access = read_access(section)
    assert isinstance(access, Tl1Access)
    return access.way


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("key", "host", "other"):
        made = asyncssh.generate_private_key("ssh-ed25519")
        made.write_private_key(tmp_path / name)
        made.write_public_key(tmp_path / f"{name}.pub")
        (tmp_path / name).chmod(0o600)
    (tmp_path / "password").write_text("open sesame\n")
    (tmp_path / "known").write_text(f"[ocs1.example.org]:22,ocs1.example.org {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "foreign_hosts").write_text(f"ocs2.example.org {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "password").chmod(0o600)
    return tmp_path


def good(folder: Path) -> str:
    return f'user = "blast"\nprivate_key = "{folder}/key"\nhost_key = "{folder}/host.pub"\n'


# ------------------------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'user = "u"\npassword_file = "/p"',
            "needs host_key or known_hosts to authenticate the switch",
        ),
        ('user = "u"\npassword_file = "/p"\nhost_key = "/h"\nknown_hosts = "/k"', "has both host_key and known_hosts"),
        ('user = "u"\nhost_key = "/h"', "needs either password_file or private_key."),
        (
            'user = "u"\nhost_key = "/h"\npassword_file = "/p"\nprivate_key = "/k"',
            "needs either password_file or private",
        ),
        (
            'user = "u"\nhost_key = "/h"\npassword_file = "/p"\nsubsystem = "tl1"\ncommand = "tl1"',
            "has both subsystem and command: keep only one",
        ),
    ],
)
def test_contradictory_ssh_table_is_rejected_in_one_sentence(table: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(table)
    assert str(caught.value).startswith(OF + message) and str(caught.value).endswith(".")


@pytest.mark.parametrize("table", ['user = ""', 'host_key = "/h"', 'user = "u"\naccept_any = true'])
def test_missing_user_and_unknown_keys_are_rejected(table: str) -> None:
    with pytest.raises(ConfigError, match=r"ssh|user|accept_any"):
        config(table)


def test_changed_ssh_table_needs_a_restart(files: Path) -> None:
    plan = plan_reload(config(), config(good(files)))
    assert plan.applied == () and plan.refused[0].startswith("optical_switch: ")


# ------------------------------------------------------------------------------------------------------- the files


def test_ssh_transport_is_read_from_table_and_files(files: Path) -> None:
    way = way_of(switch(good(files) + "open_timeout_ms = 500\nterminal = true\n"))
    assert isinstance(way, Ssh)
    assert (way.user, way.password, way.command, way.subsystem, way.terminal, way.seconds) == (
        "blast",
        "",
        "",
        "",
        True,
        0.5,
    )
    assert way.key == asyncssh.read_private_key(files / "key")
    assert list(way.trusted[0]) == [asyncssh.read_public_key(files / "host.pub")]
    assert way.secrets == frozenset()
    assert way_of(switch()) == Tcp() and Tcp().secrets == frozenset()


def test_password_is_read_and_hidden_from_repr(files: Path) -> None:
    table = f'user = "blast"\npassword_file = "{files}/password"\nknown_hosts = "{files}/known"\nsubsystem = "tl1"\n'
    way = way_of(switch(table))
    assert isinstance(way, Ssh)
    assert (way.password, way.subsystem, way.key) == ("open sesame", "tl1", None)
    assert way.secrets == {"open sesame"}
    assert "sesame" not in repr(way)
    assert way.trusted[0][0] == asyncssh.read_public_key(files / "host.pub")


def test_host_key_file_may_have_several_lines(files: Path) -> None:
    (files / "host.pub").write_text(f"# both\n{(files / 'host.pub').read_text()}\n{(files / 'other.pub').read_text()}")
    way = way_of(switch(good(files)))
    assert isinstance(way, Ssh) and len(way.trusted[0]) == 2


def broken(files: Path, fault: str) -> str:
    """Return a table, one of whose files is invalid or missing."""
    table = good(files)
    password = f'user = "blast"\npassword_file = "{files}/password"\nhost_key = "{files}/host.pub"\n'
    match fault:
        case "key readable by others":
            (files / "key").chmod(0o644)
        case "no key":
            (files / "key").unlink()
        case "no private key":
            (files / "key").write_text("nonsense")
        case "encrypted key":
            asyncssh.generate_private_key("ssh-ed25519").write_private_key(files / "key", passphrase="word")
            (files / "key").chmod(0o600)
        case "no host key":
            (files / "host.pub").unlink()
        case "private host key":
            (files / "host.pub").write_text((files / "host").read_text())
        case "empty host key":
            (files / "host.pub").write_text("# nothing\n")
        case "password readable by others":
            (files / "password").chmod(0o604)
            return password
        case "empty password":
            (files / "password").write_text("\n")
            return password
        case "host not known":
            return table.replace(f'host_key = "{files}/host.pub"', f'known_hosts = "{files}/foreign_hosts"')
        case "no known_hosts":
            (files / "known").write_text("word\n")
            return table.replace(f'host_key = "{files}/host.pub"', f'known_hosts = "{files}/known"')
    return table


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("key readable by others", "/key contains secrets but is accessible to every local user: run chmod o= "),
        ("no key", "/key cannot be read: No such file"),
        ("no private key", "/key has no private key that can be used."),
        ("encrypted key", "/key is encrypted: store it without a passphrase."),
        ("no host key", "/host.pub cannot be read: No such file"),
        ("private host key", "/host.pub is no list of public keys, one a line as in a .pub file."),
        ("empty host key", "/host.pub has no host key."),
        ("password readable by others", "/password contains secrets"),
        ("empty password", "/password is empty: write the password on its first line."),
        ("host not known", "/foreign_hosts has no key of [ocs1.example.org]:22."),
        ("no known_hosts", "/known is not in the format of known_hosts."),
    ],
)
def test_check_names_the_file_that_cannot_be_used(files: Path, capsys, fault: str, message: str) -> None:
    (files / "blast.toml").write_text(text(broken(files, fault)))
    assert main(["controller", "check", "--config", str(files / "blast.toml")]) == 2
    output = capsys.readouterr().err
    assert message in output and output.count("\n") == 1


def test_check_reports_the_transport_of_a_switch(files: Path, capsys) -> None:
    for table, way in ((good(files), "SSH"), ("", "plain TCP")):
        (files / "blast.toml").write_text(text(table))
        assert main(["controller", "check", "--config", str(files / "blast.toml")]) == 0
        assert f"glimmerglass by {way} at ocs1.example.org:22, light checked" in capsys.readouterr().out


def test_check_reads_the_tl1_password_file() -> None:
    changed = SWITCH + 'user = "u"\npassword_file = "/nowhere/password"\n' + RACK
    with pytest.raises(ConfigError, match="/nowhere/password cannot be read"):
        check_switch_files(parse(changed))


def test_missing_asyncssh_error_names_the_extra_to_install(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("blast_base.extras.find_spec", lambda name: None if name == "asyncssh" else found(name))
    with pytest.raises(ConfigError) as caught:
        way_of(switch(good(files)))
    expected = f"the optical switch ocs1 cannot use SSH: asyncssh not installed: {how_to_install('ssh-switches')}."
    assert str(caught.value) == expected


# ------------------------------------------------------------------------------------------------------- switch


def ssh_transport(files: Path) -> Ssh:
    way = way_of(switch(good(files)))
    assert isinstance(way, Ssh)
    return way


async def test_unexpected_asyncssh_error_becomes_switch_unreachable(files: Path, monkeypatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise KeyError("unexpected key\n")

    monkeypatch.setattr(asyncssh, "connect", fail)
    with pytest.raises(SwitchUnreachableError, match=r"opens no SSH session.*KeyError: 'unexpected key") as caught:
        await ssh_transport(files).open(asyncio.Protocol(), "127.0.0.1", 1, 1.0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(6))
async def test_random_ssh_packets_make_the_switch_unreachable(files: Path, seed: int) -> None:
    """Send SSH packets of any type and content before the key exchange."""
    dice = random.Random(seed)
    over = asyncio.Event()

    def packet() -> bytes:
        kind = dice.choice(
            [1, 2, 3, 4, 5, 6, 7, 20, 21, 30, 31, 50, 51, 52, 53, 60, 80, 90, 94, 98, dice.randrange(256)]
        )
        payload = bytes([kind]) + dice.randbytes(dice.randrange(40))
        padding = 4 + -(len(payload) + 9) % 8
        return (1 + len(payload) + padding).to_bytes(4) + bytes([padding]) + payload + b"\0" * padding

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(b"SSH-2.0-Box\r\n" + b"".join(packet() for _ in range(dice.randrange(1, 6))))
            writer.write_eof()
            await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        over.set()

    async with scripted(babble) as port:
        with pytest.raises(SwitchUnreachableError):
            await ssh_transport(files).open(asyncio.Protocol(), "127.0.0.1", port, 1.0)
        await over.wait()


# ------------------------------------------------------------------------------------------------------- the example


def test_uncommented_ssh_table_of_the_example_is_valid() -> None:
    lines = (Path(blast_controller.__file__).parent / "example.toml").read_text().splitlines()
    first = lines.index("# [optical_switch.ssh]")
    last = next(number for number in range(first, len(lines)) if not lines[number])
    lines[first:last] = [line.removeprefix("# ") for line in lines[first:last]]
    ssh = parse("\n".join(lines)).optical_switch[0].ssh
    assert ssh is not None
    absent = {name for name in SshSection.model_fields if name not in ssh.model_fields_set}
    assert absent == {"password_file", "known_hosts", "command"}, "the example names each as an alternative"
    defaults = SshSection(user="u")
    assert (ssh.terminal, ssh.open_timeout_ms) == (defaults.terminal, defaults.open_timeout_ms)
