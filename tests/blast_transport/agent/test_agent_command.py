"""`blast agent`: output and exit status."""

from __future__ import annotations

import io
import json
import logging
import os
from pathlib import Path

import pytest

from blast_client.cli.command import main
from blast_transport.agent.bundle import build_bundle
from blast_transport.agent.host_check import check_host
from blast_transport.agent.settings import parse
from blast_transport.base.errors import SettingsError
from blast_transport.remote import on_demand
from blast_transport.remote.on_demand import own_address_in, read_order

SECRET = "ab" * 32


@pytest.fixture(autouse=True)
def restored_logging():
    """Restore the root logger, which `run` reconfigures for its whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def config(tmp_path):
    """Return a function that writes a configuration and returns the arguments that name it."""

    def write(text: str = "", folder: Path = tmp_path) -> list[str]:
        path = tmp_path / "agent.toml"
        path.write_text(f'[[folder]]\nname = "in"\npath = "{folder}"\n{text}')
        return ["--config", str(path)]

    return write


def test_example_config_prints_valid_example(capsys):
    assert main(["agent", "example-config"]) == 0
    assert parse(capsys.readouterr().out).folder[0].name == "incoming"


def test_check_prints_listen_address_folders_and_commands(config, capsys, tmp_path):
    text = '[[command]]\nname = "eat"\nrun = ["/bin/cat", "-"]\n[limits]\nmemory_bytes = 5\n'
    assert main(["agent", "check", *config(text)]) == 0
    output = capsys.readouterr().out
    for part in ("listens on 127.0.0.1:9095 (every user of this machine)", f"files below {tmp_path}", "/bin/cat -"):
        assert part in output
    assert main(["agent", "check", "--json", *config(text)]) == 0
    assert json.loads(capsys.readouterr().out)["limits"]["memory_bytes"] == 5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[agnt]", "unknown key agnt; did you mean agent?"),
        ('[[command]]\nname = "c"\nrun = ["/bin/no-such"]', "'c' cannot be run: /bin/no-such is no program"),
        ('[[command]]\nname = "c"\nrun = ["/etc/passwd"]', "'c' cannot be run: /etc/passwd is no program"),
        ('[[command]]\nname = "c"\nrun = ["/bin/cat"]\nfolder = "/no-such"', "there is no folder /no-such"),
        ('[agent]\noptical_address = "203.0.113.1"', "agent.optical_address: "),
        ('[access]\nsecret_file = "/no-such"', "/no-such cannot be read: No such file or directory."),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_agent_reports_wrong_configuration_before_it_runs(config, capsys, command, text, sentence):
    assert main(["agent", command, *config(text)]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.startswith("blast agent: ") and captured.err.count("\n") == 1
    assert not captured.out


def test_check_names_missing_folder(config, capsys, tmp_path):
    assert main(["agent", "check", *config(folder=tmp_path / "absent")]) == 2
    assert f"the folder 'in' is not there: mkdir -p {tmp_path}/absent" in capsys.readouterr().err


def test_check_names_folder_without_write_permission(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(SettingsError, match=r"the folder 'in' .* cannot be written by user \d+"):
        check_host(parse(f'[[folder]]\nname = "in"\npath = "{tmp_path}"'))


def test_bundle_writes_executable_file(tmp_path, capsys):
    assert main(["agent", "bundle", "--output", str(tmp_path / "agent.pyz")]) == 0
    assert (tmp_path / "agent.pyz").read_bytes() == build_bundle() and os.access(tmp_path / "agent.pyz", os.X_OK)
    assert main(["agent", "bundle", "--output", str(tmp_path / "absent" / "agent.pyz")]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check", "example-config", "bundle"])
def test_help_of_each_subcommand_has_example(capsys, command):
    assert main(["agent", command, "--help"]) == 0
    assert f"blast agent {command}" in capsys.readouterr().out.split("example:")[1]


# ------------------------------------------------------------------------------------------------- over SSH


def order(**changed: object) -> bytes:
    tables = {"agent": {"listen": "0.0.0.0:0"}, "folder": [{"name": "in", "path": "/srv"}]}
    return json.dumps({"secret": SECRET, "settings": tables, "light_network": None, **changed}).encode() + b"\n"


def test_order_contains_settings_and_secret():
    given = read_order(order())
    assert given.secret.value == bytes.fromhex(SECRET) and not given.settings.agent.listen.is_loopback
    assert SECRET not in repr(given)


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b"null\n", b"\xff\n", b"[" * 60000, order(secret="xx"), order(secret=3), order(secret="ab"),
     order(settings=3), order(settings={"agnt": {}}), order(light_network="10.0.0.1/8"), order(light_network=True)],
)  # fmt: skip
def test_agent_rejects_invalid_order_with_reason(line, capsys):
    with pytest.raises(SettingsError):
        read_order(line)
    assert on_demand.main(io.BytesIO(line)) == 1
    assert json.loads(capsys.readouterr().out)["event"] == "unusable"


def test_optical_address_is_own_address_in_given_network():
    import ipaddress

    assert own_address_in(ipaddress.IPv4Network("127.0.0.0/8")) == "127.0.0.1"
    assert own_address_in(ipaddress.IPv4Network("203.0.113.0/24")) is None
    assert read_order(order(light_network="127.0.0.0/8")).settings.agent.optical_address == "127.0.0.1"


@pytest.mark.parametrize(
    ("connection", "address"),
    [("10.0.0.9 5 127.0.0.1 22", "127.0.0.1"), ("10.0.0.9 5 203.0.113.1 22", None), ("::1 5 ::1 22", None), ("", None)],
)
def test_optical_address_defaults_to_address_of_ssh_connection(monkeypatch, connection, address):
    monkeypatch.setenv("SSH_CONNECTION", connection)
    assert read_order(order()).settings.agent.optical_address == address
