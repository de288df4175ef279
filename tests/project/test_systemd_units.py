"""The unit files of controller and agent: the checks of systemd, and settings that the processes rely on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import blast_transport.agent
from blast_client.cli.command import main
from blast_transport.agent.settings import load
from tests.support.systemd import UNITS, analyze, unit_of

CONTROLLER, AGENT = UNITS / "blast-controller.service", UNITS / "blast-agent.service"
DROP_IN = UNITS / "blast-agent.service.d" / "socket-buffers.conf"
EXAMPLE = Path(blast_transport.agent.__file__).with_name("example.toml")
BLAST = Path(sys.executable).with_name("blast")
BOTH = pytest.mark.parametrize("unit", [CONTROLLER, AGENT], ids=lambda unit: unit.stem)


def service_of(unit):
    return unit_of(unit)["Service"]


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("unit", "drop_in", "exposure"), [(CONTROLLER, None, 20), (AGENT, None, 20), (AGENT, DROP_IN, 30)]
)
def test_systemd_reports_no_error_and_low_exposure(tmp_path, unit, drop_in, exposure):
    """`exposure` is in tenths, of at most 100, of `systemd-analyze security`; 96 without any hardening."""
    text = unit.read_text()
    assert "/opt/blast/bin/blast " in text
    path = tmp_path / unit.name
    path.write_text(text.replace("/opt/blast/bin/blast ", f"{BLAST} "))
    if drop_in is not None:
        folder = tmp_path / drop_in.parent.name
        folder.mkdir()
        shutil.copy(drop_in, folder)
    done = analyze("verify", "--man=no", str(path))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    done = analyze("security", "--offline=true", f"--threshold={exposure}", "--no-pager", str(path))
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.test_all
def test_the_system_calls_of_the_data_plane_are_allowed():
    """Check splice and tee, too: a pipeline moves its data with them, and a filter easily omits rare calls."""
    filters = [line for line in AGENT.read_text().splitlines() if line.startswith("SystemCallFilter=")]
    assert filters == ["SystemCallFilter=@system-service", "SystemCallFilter=~@privileged"]
    parts = ("@system-service", "@basic-io", "@file-system", "@io-event", "@network-io")
    names = set(analyze("syscall-filter", *parts).stdout.split())
    assert set(parts[1:]) < names, "the others are parts of the first"
    assert {"splice", "tee", "sendmmsg", "openat", "pwritev2", "fallocate", "setsockopt", "epoll_wait"} <= names
    assert not names & set(analyze("syscall-filter", "@privileged").stdout.split()) & {"splice", "tee", "setsockopt"}


@BOTH
def test_readiness_watchdog_and_reload_are_those_of_the_process(unit):
    service = service_of(unit)
    assert service["Type"] == "notify" and service["NotifyAccess"] == "main"
    assert service["WatchdogSec"] == "10", (
        "as in both guides; longer than a garbage collection or an iteration of the loop"
    )
    assert service["ExecReload"] == '/bin/sh -c "kill -HUP $MAINPID"'
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"] == "2", "wrong configuration"


def test_the_agent_has_time_to_stop_and_the_folder_of_its_example():
    service, example = service_of(AGENT), load(EXAMPLE)
    assert float(service["TimeoutStopSec"]) > 2 * example.agent.stop_timeout_ms / 1000
    (folder,) = example.folder
    assert str(folder.path) in [f"/var/lib/{name}" for name in service["StateDirectory"].split()]


@pytest.mark.parametrize(
    ("unit", "run", "config"),
    [
        (CONTROLLER, "blast_controller.cli.command._run", "/etc/blast/blast.toml"),
        (AGENT, "blast_transport.agent.command._run", "/etc/blast/agent.toml"),
    ],
)
def test_command_line_of_unit_parses(unit, run, config, monkeypatch):
    _, *arguments = service_of(unit)["ExecStart"].split()
    ran = []
    monkeypatch.setattr(run, lambda options: ran.append(options) or 0)
    assert main(arguments) == 0
    assert ran[0].config == Path(config) and ran[0].log_format == "json"


@pytest.mark.parametrize(("unit", "user"), [(CONTROLLER, "blast"), (AGENT, "blast-agent")])
def test_unit_grants_no_privilege(unit, user):
    service = service_of(unit)
    assert (service["User"], service["CapabilityBoundingSet"], service["NoNewPrivileges"]) == (user, "", "yes")
    assert service["ProtectSystem"] == "strict"
    assert set(service["RestrictAddressFamilies"].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}


@pytest.mark.test_all
def test_agent_runs_with_memory_deny_write_execute():
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
