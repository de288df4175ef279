"""The pure parts of the Kascade paper's scenarios, and the programs that they run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.waiting import eventually

SETTINGS = {"bytes": 20_000_000, "limit_seconds": 120, "repeats": 3}


def row(runs=(), tool: str = "naive", receivers: int = 10) -> dict[str, object]:
    from benchmarks.transfers.bed.scenarios import SCENARIOS, row_of

    return row_of(SCENARIOS["ordered"], receivers, tool, SETTINGS, runs)


@given(st.integers(1, 100), st.integers(0, 9))
def test_every_order_names_every_receiver_once_and_a_round_has_one_order(receivers, seed):
    from benchmarks.transfers.bed.scenarios import SCENARIOS

    for scenario in SCENARIOS.values():
        order = list(scenario.order(receivers, seed))
        assert sorted(order) == list(range(1, receivers + 1))
        assert order == list(scenario.order(receivers, seed))
        assert scenario.name == "random" or order == sorted(order)


def test_random_rounds_differ():
    from benchmarks.transfers.bed.scenarios import in_random_order

    assert len({tuple(in_random_order(25, seed)) for seed in range(5)}) == 5


def test_a_run_is_complete_late_or_failed():
    from benchmarks.transfers.bed.measured import Measured
    from benchmarks.transfers.bed.scenarios import is_given_up, line

    complete = Measured(12.0, 2.0, None, None)
    failed = Measured(120.0, 120.0, None, None, "h1 ended")
    late = Measured(120.0, 120.0, None, None, "no file in time", late=True)
    one = row([complete])
    assert (one["seconds"], one["start_seconds"], one["processor_seconds"]) == ([12.0], [2.0], [])
    assert one["link_share"] == pytest.approx(1.0) and row([failed])["link_share"] is None
    assert "2.00 s start-up +   10.00 s" in line(one) and "1.000 of the link" in line(one)
    assert row([complete, failed, failed])["failures"] == ["h1 ended"] * 2
    assert not is_given_up([complete, failed, failed]), "it works sometimes"
    assert is_given_up([failed, failed]) and is_given_up([complete, late])
    assert row([late])["late"] == 1 and "not done in 120 s" in line(row([late]))


def test_late_tool_is_not_measured_with_more_receivers():
    from benchmarks.transfers.bed.measured import Measured
    from benchmarks.transfers.bed.scenarios import too_slow

    late = row([Measured(120.0, 120.0, None, None, "no file in time", late=True)], receivers=5)
    assert too_slow([late], "ordered", "naive", 6) == "not done in 120 s with 5 receivers already"
    assert not too_slow([late], "ordered", "naive", 5)
    assert not too_slow([late], "ordered", "mpi", 6)
    assert not too_slow([late], "random", "naive", 6)


def scenarios(monkeypatch, tmp_path: Path, carry, *words: str) -> tuple[bool, list[str]]:
    """Run the script with `carry(tool, bed)` for a transfer; whether it is content, and what was carried."""
    from benchmarks.transfers import pipeline_scenarios as script
    from benchmarks.transfers.bed import scenarios as places

    carried: list[str] = []

    @contextmanager
    def bed_and_file(plan, size):
        yield plan, tmp_path / "source"

    def measured(tool, plan, *_):
        carried.append(f"{tool.name} {plan.receivers}")
        return carry(tool, plan)

    @contextmanager
    def here(_self, _bed):
        yield

    monkeypatch.setattr(script.script, "bed_and_file", bed_and_file)
    monkeypatch.setattr(script, "compiled", lambda *_: tmp_path)
    monkeypatch.setattr(script, "measured", measured)
    monkeypatch.setattr(places.Scenario, "distances", here)
    for tool in places.COMMANDS.values():
        monkeypatch.setattr(tool, "missing", property(lambda self: ["taktuk"] if "taktuk" in self.name else []))
    kept = str(tmp_path / "kept.json")
    monkeypatch.setattr(sys, "argv", ["x", "--scenarios", "ordered,sites", "--keep", kept, "--json", *words])
    return script.main(), carried


def test_interrupted_run_resumes_and_omitted_rows_have_a_reason(monkeypatch, tmp_path, capsys):
    from benchmarks.transfers.bed.measured import Measured

    def carry(tool, plan):
        if tool.name == "mpi" and plan.receivers > 5:
            return Measured(180.0, 180.0, None, None, "not in time", late=True)
        return Measured(12.0, 2.0, 1.0, 0.0)

    def ended(tool, plan):
        if plan.receivers > 10:
            raise KeyboardInterrupt
        return carry(tool, plan)

    words = ("--receivers", "1,5,10,25", "--repeats", "2")
    with pytest.raises(KeyboardInterrupt):
        scenarios(monkeypatch, tmp_path, ended, *words)
    content, carried = scenarios(monkeypatch, tmp_path, carry, *words)
    assert content
    assert "pipeline 25" in carried and "pipeline 10" not in carried, "kept results are not measured again"
    assert "mpi 25" not in carried
    rows = {
        (one["scenario"], one["tool"], one["receivers"]): one for one in json.loads(capsys.readouterr().out)["rows"]
    }
    assert len(rows) == 6 * (3 + 2)
    assert "apt-get install" in rows["ordered", "taktuk-chain", 5]["left_out"]
    assert "router" in rows["sites", "udpcast", 1]["left_out"]
    assert rows["ordered", "mpi", 25]["left_out"] == "not done in 180 s with 10 receivers already"
    assert rows["ordered", "mpi", 10]["late"] == 1
    assert all(bool(one["seconds"]) != bool(one["left_out"] or one["late"]) for one in rows.values())
    assert scenarios(monkeypatch, tmp_path, carry, *words)[1] == []


def test_only_a_failure_of_ours_is_a_failure(monkeypatch, tmp_path, capsys):
    from benchmarks.transfers.bed.measured import Measured

    for ours in (True, False):

        def carry(tool, _plan, ours=ours):
            wrong = (tool.name == "pipeline") == ours
            return Measured(9.0, 1.0, None, None, "another file than was sent" if wrong else "")

        (tmp_path / "kept.json").unlink(missing_ok=True)
        assert scenarios(monkeypatch, tmp_path, carry, "--receivers", "5")[0] != ours


def test_first_piece_is_detected_when_copy_has_data(tmp_path):
    from benchmarks.transfers.bed.measured import FirstPiece

    begun = threading.Event()
    with (tmp_path / "copy").open("wb") as copy, FirstPiece([tmp_path], 1 << 20, begun.set) as first:
        copy.truncate(1 << 20)
        (tmp_path / "note").write_bytes(bytes(100))
        assert not begun.wait(0.1)
        copy.write(b"x" * (64 << 10))
        copy.flush()
        assert begun.wait(30)
    assert first.moment is not None
    # Of a mebibyte 64 KiB were there; the rest took 15 s, so these one.
    assert first.seen == 64 << 10
    assert first.began(first.moment + 15.0, 1 << 20) == pytest.approx(first.moment - 1.0)
    assert first.began(first.moment + 15.0, 64 << 10) == first.moment, "nothing is known of what was there at once"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_processor_time_includes_child_processes():
    from benchmarks.transfers.bed.measured import Processor

    burn = "import os, time\nif not os.fork():\n while time.process_time() < 0.3: pass\n os._exit(0)\nos.wait()"
    with Processor() as processor:
        before = processor.seconds
        if before is None:
            pytest.skip("the kernel has no control groups of version 2 here")
        subprocess.run([sys.executable, "-c", burn], check=True)
        used, others = processor.seconds, processor.others_share
        group = processor._group
    assert used is not None and 0.3 <= used - before < 10
    assert others is not None and 0 <= others <= 1
    assert group is not None and not group.exists()


@pytest.mark.cc
def test_naive_tcp_waits_for_a_receiver_that_is_still_starting(tmp_path):
    from benchmarks.transfers.bed.programs import compile_into

    program = compile_into(tmp_path, "naive_tcp")
    (tmp_path / "source").write_bytes(os.urandom(1_000_003))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with subprocess.Popen([program, "send", tmp_path / "source", port, "127.0.0.1"]) as sender:
        try:
            # It sleeps only when it has been refused, and will try again.
            eventually(lambda: b") S " in Path(f"/proc/{sender.pid}/stat").read_bytes(), "it to wait")
            subprocess.run([program, "receive", port, tmp_path / "copy"], check=True, capture_output=True, timeout=30)
            assert sender.wait(30) == 0
        finally:
            sender.kill()
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "source").read_bytes()
