"""The record of decision times that `--compute recorded` reads; a busy machine records nothing."""

from __future__ import annotations

import os
import sys
import tomllib

import pytest

from blast_sim.controller.compute import recorded as recorded_seconds
from blast_sim.papers.blast.measuring import decisions

ROWS = [{"racks": 120, "requests": 36, "milliseconds": 3.6}, {"racks": 1000, "requests": 300, "milliseconds": 60.0}]


def test_record_has_the_machine_and_its_rows() -> None:
    table = tomllib.loads(decisions.recorded(ROWS, "2 cores, load 0.1"))
    assert table == {"machine": "2 cores, load 0.1", "decision": ROWS}


def test_simulator_reads_the_recorded_file() -> None:
    first = tomllib.loads(decisions.RECORD.read_text())["decision"][0]
    assert recorded_seconds(first["racks"], first["requests"]) == pytest.approx(first["milliseconds"] / 1000)


def test_busy_machine_measures_nothing(monkeypatch, capsys) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (2.0, 1.0, 1.0))
    monkeypatch.setattr(sys, "argv", ["decisions", "--record"])
    monkeypatch.setattr(decisions, "decision_row", lambda *_: pytest.fail("it was measured"))
    assert decisions.main() == 1
    assert "idle machine" in capsys.readouterr().err


def test_idle_machine_writes_the_record(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 1.0, 1.0))
    monkeypatch.setattr(sys, "argv", ["decisions", "--record"])
    monkeypatch.setattr(decisions, "RECORD", tmp_path / "recorded_compute.toml")
    monkeypatch.setattr(decisions, "decision_row", lambda racks, requests: {**ROWS[0], "racks": racks})
    assert decisions.main() == 0
    assert [row["racks"] for row in tomllib.loads(decisions.RECORD.read_text())["decision"]] == [120, 1000, 10_000]
    assert capsys.readouterr().out == decisions.RECORD.read_text()
