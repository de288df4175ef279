"""Orders for hosts without an agent, a shell command or a path, and their record in the host's log."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.agent.settings import from_tables
from blast_transport.base.errors import SettingsError, WrongInputError
from blast_transport.credentials.material import SharedSecret
from blast_transport.remote import on_demand
from blast_transport.remote.audit import client_description, record
from blast_transport.remote.line import MAX_BYTES, table_of
from blast_transport.remote.on_demand import permissions_of, read_order
from blast_transport.remote.place import TARGET, tables_of
from blast_transport.remote.start import StartOptions, _order, started_agents

SECRET = SharedSecret(b"s" * 32)


def ordered(folder: str = "", **options: object) -> on_demand.Order:
    """Return the order that a host reads from the order of a sender."""
    return read_order(_order(SECRET, folder, StartOptions(**options), "h2"))  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------- lines


def run(line: str, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line like an agent."""
    command = table_of(line, "")["run"]
    return subprocess.run(command, input=given, capture_output=True, check=False, timeout=60, env=environment)


PATHS = {"PATH": "/usr/bin:/bin"}


@pytest.mark.skipif(shutil.which("bash", path=PATHS["PATH"]) is None, reason="needs bash, or a sh with pipefail")
def test_failed_part_of_shell_pipeline_fails_command() -> None:
    done = run("no-such-program-here | cat", b"data", **PATHS)
    assert done.returncode == 127 and b"not found" in done.stderr
    assert run("exit 3", **PATHS).returncode == 3
    assert run("cat >/dev/null; false || true", **PATHS).returncode == 0


def test_command_line_runs_in_plain_shell(tmp_path: Path) -> None:
    assert run("IFS= read -r word; echo $word", b"x  y\n", PATH=str(tmp_path)).stdout == b"x y\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("a\0b", "NUL"),
        ("x" * (MAX_BYTES + 1), f"more than {MAX_BYTES} bytes"),
        ("cat >{file_name}", r'"\$BLAST_FILE_NAME"'),
    ],
)
def test_invalid_command_line_is_rejected(line: str, sentence: str) -> None:
    with pytest.raises(WrongInputError, match=sentence):
        table_of(line, "")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=MAX_BYTES // 4))
def test_accepted_command_line_arrives_unchanged(line: str) -> None:
    if not line.strip():
        return
    order = _order(SECRET, "", StartOptions(line=line), "h2")
    assert len(order) < 1 << 16, "an agent reads no more"
    (command,) = read_order(order).settings.command
    assert command.run[-1] == line and command.report_errors


def test_command_line_is_only_permission_and_runs_in_folder(tmp_path: Path) -> None:
    for folder, expected in (("", "/"), (str(tmp_path), str(tmp_path))):
        settings = ordered(folder, line="tar -xzC /opt/").settings
        assert str(settings.command[0].folder) == expected
        assert not settings.folder and not settings.device
        assert permissions_of(settings) == "run tar -xzC /opt/"


@pytest.mark.parametrize(
    ("options", "folder", "sentence"),
    [
        ({"line": "cat", "path": "/dev/null"}, "", "either a line to run or a path"),
        ({"line": " "}, "", "is empty"),
        ({"line": "cat"}, "srv", "must be an absolute path"),
        ({}, "", "must be an absolute path"),
    ],
)
def test_invalid_order_is_rejected_before_hosts_are_contacted(
    options: dict[str, str], folder: str, sentence: str
) -> None:
    with pytest.raises(WrongInputError, match=sentence), started_agents(["h2"], folder, StartOptions(**options)):
        pass


# --------------------------------------------------------------------------------------------------------- paths


def test_path_becomes_folder_or_device_depending_on_host(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    for name in ("old", "new"):
        assert tables_of(f"{tmp_path}/{name}") == {"folder": [{"name": TARGET, "path": str(tmp_path)}]}
    assert tables_of("/dev/null") == {"device": [{"name": TARGET, "path": "/dev/null"}]}
    (tmp_path / "by-name").symlink_to("/dev/null")
    assert "device" in tables_of(f"{tmp_path}/by-name")


def test_unwritable_path_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, sentence in (
        (str(tmp_path), "is a folder"),
        (f"{tmp_path}/fifo", "neither a file nor a device"),
        ("/dev/no-such-disk", "there is no device"),
        ("srv/x", "no absolute path"),
        ("/", "no absolute path"),
        ("/a\0b", "cannot be looked at"),
    ):
        with pytest.raises(SettingsError, match=sentence):
            tables_of(path)


def test_path_is_only_permission_and_contains_host_name(tmp_path: Path) -> None:
    settings = ordered(path=f"{tmp_path}/{{host}}/x").settings
    assert [(folder.name, str(folder.path)) for folder in settings.folder] == [(TARGET, f"{tmp_path}/h2")]
    assert permissions_of(ordered(path="/dev/null").settings) == "overwrite /dev/null"
    assert permissions_of(ordered("/srv").settings) == "write files below /srv"


# ---------------------------------------------------------------------------------------------- the system's log


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # The address of a Unix socket has room for about a hundred bytes.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("log")
        listening.setblocking(False)
        yield listening


def records(log: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(log.recv(1 << 16).decode())
        except BlockingIOError:
            return found


@given(line=st.text(max_size=3000))
def test_log_record_contains_whole_line_in_printable_pieces(
    tmp_path_factory: pytest.TempPathFactory, line: str
) -> None:
    folder = tmp_path_factory.mktemp("log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(folder / "log"))
        listening.setblocking(False)
        record(f"may run {line}", folder / "log")
        found = records(listening)
    pieces = [one.partition(": ")[2] for one in found]
    if len(pieces) > 1:
        pieces = [one.removesuffix(f" ({number}/{len(pieces)})") for number, one in enumerate(pieces, 1)]
    assert all(one.startswith("<85>blast-agent[") and one.isprintable() and len(one) < 900 for one in found)
    assert "".join(pieces) == "".join(c if c.isprintable() else repr(c)[1:-1] for c in f"may run {line}")


def test_client_description_names_user_and_ssh_address() -> None:
    assert client_description({"SSH_CONNECTION": "10.0.0.1 4711 10.0.0.2 22"}) == f"user {os.geteuid()}, from 10.0.0.1"
    assert client_description({}) == f"user {os.geteuid()}, from an unknown address"


@pytest.mark.usefixtures("own_signals")
def test_agent_reports_and_logs_permissions_before_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded: list[str] = []
    monkeypatch.setattr(on_demand, "record", recorded.append)
    order = _order(SECRET, "", StartOptions(line="gunzip | dd of=/dev/sda2", listen="127.0.0.1:0"), "h2")
    assert on_demand.main(io.BytesIO(order)) == 0
    ready = json.loads(capsys.readouterr().out.splitlines()[0])
    assert ready["event"] == "ready" and ready["may"] == "run gunzip | dd of=/dev/sda2"
    assert len(recorded) == 1 and recorded[0].endswith("may run gunzip | dd of=/dev/sda2")


def test_configuration_may_report_command_errors_to_senders() -> None:
    table = {"name": "c", "run": ["/bin/cat"]}
    reported = [
        from_tables({"command": [table | more]}).command[0].report_errors for more in ({}, {"report_errors": True})
    ]
    assert reported == [False, True]


def test_receiver_modules_are_loaded_before_ready():
    """A hundred bare hosts on few processors that load modules in their first phase would be late for it."""
    code = (
        "import sys; from blast_transport.session.registry import load_receivers; load_receivers();"
        "before = set(sys.modules);"
        "import blast_transport.transports.pipeline.receiver, blast_transport.transports.trees.receiver;"
        "print(sorted(set(sys.modules) - before))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
