"""The service's unit file: what systemd itself says of it, and what the controller relies on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.systemd import UNITS, analyze, needs_systemd, unit_of

UNIT = UNITS / "blast-controller.service"
BLAST = Path(sys.executable).with_name("blast")
HIGHEST_EXPOSURE = 20
"""Tenths, of at most 100, of `systemd-analyze security`; a service without any hardening has 96."""


@pytest.fixture
def service():
    return unit_of(UNIT)["Service"]


@pytest.fixture
def installed(tmp_path):
    """The unit with a program that exists here."""
    text = UNIT.read_text()
    assert "/opt/blast/bin/blast " in text
    path = tmp_path / UNIT.name
    path.write_text(text.replace("/opt/blast/bin/blast ", f"{BLAST} "))
    return path


@needs_systemd
def test_systemd_finds_no_mistake(installed):
    done = analyze("verify", "--man=no", str(installed))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
def test_systemd_finds_it_hardened(installed):
    done = analyze("security", "--offline=true", f"--threshold={HIGHEST_EXPOSURE}", "--no-pager", str(installed))
    assert done.returncode == 0, done.stdout[-2000:]


def test_readiness_watchdog_and_reload_are_those_of_the_process(service):
    assert service["Type"] == "notify" and service["NotifyAccess"] == "main"
    assert float(service["WatchdogSec"]) >= 5, "a garbage collection is no death"
    assert service["ExecReload"] == '/bin/sh -c "kill -HUP $MAINPID"'
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"] == "2", "wrong configuration"


def test_the_command_line_is_one_that_the_program_takes(service, monkeypatch):
    from blast_client.command import main

    _, *arguments = service["ExecStart"].split()
    ran = []
    monkeypatch.setattr("blast_controller.command._run", lambda args: ran.append(args) or 0)
    assert main(arguments) == 0
    assert ran[0].config == Path("/etc/blast/blast.toml") and ran[0].log_format == "json"


def test_no_privilege_is_given(service):
    assert service["User"] == "blast" and service["CapabilityBoundingSet"] == "" and service["NoNewPrivileges"] == "yes"
    assert set(service["RestrictAddressFamilies"].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}
