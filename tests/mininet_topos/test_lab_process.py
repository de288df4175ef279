"""Processes of a lab: ready, failed, late, stopped; always with the mark and the log."""

import os
import queue
import sys
from pathlib import Path

import pytest

from mininet_topos.kernel.errors import HostError, ProcessError
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.kernel.process import LabProcess
from mininet_topos.lab import registry

READY = """import json, sys, time
print("starting"); print(json.dumps({"event": "ready", "thrift": "127.0.0.1:1"}), flush=True); time.sleep(60)"""
# Not a form that a real lab's id can have: such a process is no lab's.
MARK = f"test-{os.getpid()}"


@pytest.fixture
def launch(tmp_path):
    processes = []

    def start(code):
        process = LabProcess("thing", [sys.executable, "-c", code], MARK, tmp_path / "log")
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.stop()


def test_wait_ready_finds_ready_line_in_output(launch, tmp_path):
    process = launch(READY)
    assert process.wait_ready(30)["thrift"] == "127.0.0.1:1"
    assert process.running
    assert f"BLAST_LAB={MARK}".encode() in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    process.stop()
    assert not process.running
    assert (tmp_path / "log").read_text().startswith("starting\n")


def test_exit_before_ready_is_reported_with_last_output(launch):
    with pytest.raises(ProcessError, match="status 3: no mirrors today"):
        launch("import sys; sys.stderr.write('no mirrors today\\n'); sys.exit(3)").wait_ready(30)


def test_watch_reports_only_unrequested_exit(launch):
    reports = queue.SimpleQueue()
    process = launch("import sys; sys.stderr.write('no mirrors today\\n'); sys.exit(3)")
    process.watch(reports.put)
    assert reports.get(timeout=30) == "the thing ended with status 3: no mirrors today"
    process.watch(reports.put)
    assert reports.get(timeout=30).startswith("the thing ended"), "also when it is over already"
    for end in (LabProcess.stop, LabProcess.kill):
        process = launch(READY)
        process.watch(reports.put)
        process.wait_ready(30)
        end(process)
        with pytest.raises(queue.Empty):
            reports.get(timeout=0.2)


def test_wait_ready_fails_at_timeout(launch):
    with pytest.raises(ProcessError, match=r"not ready after 0\.2 s"):
        launch("import time; time.sleep(60)").wait_ready(0.2)


def test_stop_kills_process_that_ignores_sigterm(launch, monkeypatch):
    monkeypatch.setattr("mininet_topos.kernel.process._STOP_SECONDS", 0.2)
    process = launch(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{READY}")
    process.wait_ready(30)
    process.stop()
    assert not process.running


def test_claimed_lab_ids_are_unique_and_record_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ROOT", tmp_path / "labs")
    tokens = iter(["abcd", "abce", "1234"])
    monkeypatch.setattr(registry.secrets, "token_hex", lambda _size: next(tokens))
    first, second = registry.claim(), registry.claim()
    assert (first.lab, second.lab) == ("babc", "b123")
    assert registry.known_labs() == ["b123", "babc"]
    assert registry.owner_process("babc") == os.getpid()


def test_reused_process_id_is_not_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ROOT", tmp_path / "labs")
    lab = registry.claim().lab
    monkeypatch.setattr(registry, "started", lambda pid: 1)
    assert registry.owner_process(lab) is None


def test_entering_namespace_of_dead_process_fails():
    with pytest.raises(HostError, match="cannot enter"):
        run_in_network_of(2**22 + 1, lambda: None)
