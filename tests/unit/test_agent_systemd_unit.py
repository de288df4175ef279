"""The agent's unit file: what systemd itself says of it, and what the agent relies on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import blast_transport.agent
from blast_transport.agent.settings import load
from tests.support.systemd import UNITS, analyze, needs_systemd, unit_of

UNIT = UNITS / "blast-agent.service"
DROP_IN = UNITS / "blast-agent.service.d" / "socket-buffers.conf"
BLAST = Path(sys.executable).with_name("blast")
HIGHEST_EXPOSURE = 20
"""Tenths, of at most 100, of `systemd-analyze security`; a service without any hardening has 96."""
HIGHEST_EXPOSURE_WITH_CAPABILITY = 30


@pytest.fixture
def service():
    return unit_of(UNIT)["Service"]


@pytest.fixture(params=["as it is", "with the drop-in"])
def installed(request, tmp_path):
    """The unit with a program that exists here; (path, the exposure that it may have)."""
    text = UNIT.read_text()
    assert "/opt/blast/bin/blast " in text
    path = tmp_path / UNIT.name
    path.write_text(text.replace("/opt/blast/bin/blast ", f"{BLAST} "))
    if request.param == "as it is":
        return path, HIGHEST_EXPOSURE
    folder = tmp_path / DROP_IN.parent.name
    folder.mkdir()
    shutil.copy(DROP_IN, folder)
    return path, HIGHEST_EXPOSURE_WITH_CAPABILITY


@needs_systemd
def test_systemd_finds_no_mistake(installed):
    done = analyze("verify", "--man=no", str(installed[0]))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
def test_systemd_finds_it_hardened(installed):
    path, highest = installed
    done = analyze("security", "--offline=true", f"--threshold={highest}", "--no-pager", str(path))
    assert done.returncode == 0, done.stdout[-2000:]


@needs_systemd
def test_the_carriers_system_calls_are_allowed():
    """splice and tee move the data of a pipeline, and are rare enough to be forgotten by a filter."""
    filters = [line for line in UNIT.read_text().splitlines() if line.startswith("SystemCallFilter=")]
    assert filters == ["SystemCallFilter=@system-service", "SystemCallFilter=~@privileged"]
    parts = ("@system-service", "@basic-io", "@file-system", "@io-event", "@network-io")
    names = set(analyze("syscall-filter", *parts).stdout.split())
    assert set(parts[1:]) < names, "the others are parts of the first"
    assert {"splice", "tee", "sendmmsg", "openat", "pwritev2", "fallocate", "setsockopt", "epoll_wait"} <= names
    assert not names & set(analyze("syscall-filter", "@privileged").stdout.split()) & {"splice", "tee", "setsockopt"}


def test_readiness_watchdog_and_end_are_those_of_the_process(service):
    assert service["Type"] == "notify" and service["NotifyAccess"] == "main"
    assert float(service["WatchdogSec"]) >= 5, "the loop turns once a second"
    assert service["ExecReload"] == '/bin/sh -c "kill -HUP $MAINPID"'
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"] == "2", "wrong configuration"
    stop = load(Path(blast_transport.agent.__file__).with_name("example.toml")).agent.stop_ms / 1000
    assert float(service["TimeoutStopSec"]) > 2 * stop


def test_the_command_line_is_one_that_the_program_takes(service, monkeypatch):
    from blast_client.command import main

    _, *arguments = service["ExecStart"].split()
    ran = []
    monkeypatch.setattr("blast_transport.agent.command._run", lambda options: ran.append(options) or 0)
    assert main(arguments) == 0
    assert ran[0].config == Path("/etc/blast/agent.toml") and ran[0].log_format == "json"


def test_the_folder_of_the_example_is_the_one_that_the_unit_makes(service):
    (folder,) = load(Path(blast_transport.agent.__file__).with_name("example.toml")).folder
    assert str(folder.path) in [f"/var/lib/{name}" for name in service["StateDirectory"].split()]


def test_no_privilege_is_given(service):
    assert service["User"] == "blast-agent" and service["CapabilityBoundingSet"] == ""
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    assert set(service["RestrictAddressFamilies"].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}


def test_memory_that_is_written_is_never_run_and_the_agent_does_without():
    """MemoryDenyWriteExecute, as the kernel itself enforces it (Linux 6.3): ctypes still calls tee."""
    code = (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.prctl(65, 1, 0, 0, 0) != 0: sys.exit(77)\n"
        "inner = '''import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "one, two = os.pipe(), os.pipe()\n"
        'os.write(one[1], b"x")\n'
        "assert libc.prctl(66, 0, 0, 0, 0) == 1\n"
        "assert libc.tee(one[0], two[1], 1, 0) == 1\n"
        "import blast_transport.agent.process'''\n"
        "os.execv(sys.executable, [sys.executable, '-c', inner])"
    )
    root = UNITS.parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("needs Linux 6.3")
    assert done.returncode == 0, done.stderr
