"""A machine that cannot run a lab: every command reports it in one sentence, and builds nothing.

The time limit only ends commands that hang.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import down

pytestmark = pytest.mark.lab

BLAST = str(Path(sys.executable).with_name("blast"))
LIMIT_SECONDS = 90.0
COMMANDS = {
    "up": ("lab", "up", "--racks", "2", "--json"),
    "demo": ("lab", "demo", "--requests", "1"),
    "replay": ("lab", "replay", "sample", "--first", "2"),
}
READ_ONLY_SETTINGS = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"'


def without(capability: str) -> list[str]:
    return ["setpriv", f"--bounding-set=-{capability}", f"--inh-caps=-{capability}"]


def ended(command: Sequence[str], folder: Path, env: Mapping[str, str] = os.environ) -> tuple[int, str, str]:
    """Status, standard output and standard error; whatever it has started is ended, and its labs are removed."""
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**env},
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        labs = registry.labs_built_by(process.pid)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        for lab in labs:
            down(lab)
    assert labs == []
    return process.returncode, out, err


def assert_one_sentence(found: tuple[int, str, str], *words: str) -> None:
    status, _, err = found
    assert (status, err.count("\n")) == (1, 1), err
    assert err.startswith("blast lab") or json.loads(err)["status"] == 1
    for word in words:
        assert word in err


@pytest.mark.timeout(200)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_fail_at_once_without_namespace_capability(tmp_path: Path, command) -> None:
    found = ended([*without("sys_admin"), BLAST, *command], tmp_path)
    assert_one_sentence(found, "refuses network namespaces", "Operation not permitted", "--privileged")


@pytest.mark.timeout(200)
@pytest.mark.parametrize("capability", ["net_admin", "sys_chroot"])
def test_lab_up_fails_in_one_sentence_without_capability(tmp_path: Path, capability: str) -> None:
    found = ended([*without(capability), BLAST, *COMMANDS["up"]], tmp_path)
    assert_one_sentence(found, "refuses interfaces in a namespace", "--privileged")


@pytest.mark.timeout(200)
def test_lab_up_fails_in_one_sentence_on_read_only_sysctl(tmp_path: Path) -> None:
    found = ended(["unshare", "--mount", "sh", "-c", READ_ONLY_SETTINGS, "sh", BLAST, *COMMANDS["up"]], tmp_path)
    assert_one_sentence(found, "Read-only file system")


@pytest.mark.timeout(200)
@pytest.mark.parametrize("listens", [False, True], ids=["down", "silent"])
def test_lab_up_fails_in_one_sentence_without_open_vswitch(tmp_path: Path, listens: bool) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as database:
        if listens:
            database.bind(str(tmp_path / "db.sock"))
            database.listen()
        env = {**os.environ, "OVS_RUNDIR": str(tmp_path)}
        assert_one_sentence(
            ended([BLAST, *COMMANDS["up"]], tmp_path, env), "Open vSwitch does not answer", "make setup"
        )


def test_raising_receive_buffers_in_namespace_does_not_fail() -> None:
    widen = "from mininet_topos.kernel.socket_buffers import raise_receive_default; raise_receive_default()"
    subprocess.run(["unshare", "--net", sys.executable, "-c", widen], check=True)
