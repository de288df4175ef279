"""The record of what decisions take: what is written is what `--compute recorded` reads, never of a busy machine."""

from __future__ import annotations

import os
import sys
import tomllib

import pytest

from blast_sim.controller.compute import recorded as recorded_seconds
from blast_sim.papers.blast.measuring import decisions

ROWS = [{"racks": 120, "requests": 36, "milliseconds": 3.6}, {"racks": 1000, "requests": 300, "milliseconds": 60.0}]


def test_what_is_kept_says_where_it_was_taken_and_is_read_back() -> None:
    table = tomllib.loads(decisions.recorded(ROWS, "2 cores, load 0.1"))
    assert table == {"machine": "2 cores, load 0.1", "decision": ROWS}


def test_the_file_that_is_written_is_the_one_that_is_read() -> None:
    first = tomllib.loads(decisions.RECORD.read_text())["decision"][0]
    assert recorded_seconds(first["racks"], first["requests"]) == pytest.approx(first["milliseconds"] / 1000)


def test_a_busy_machine_is_refused_before_anything_is_measured(monkeypatch, capsys) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (2.0, 1.0, 1.0))
    monkeypatch.setattr(sys, "argv", ["decisions", "--record"])
    monkeypatch.setattr(decisions, "decision_row", lambda *_: pytest.fail("it was measured"))
    assert decisions.main() == 1
    assert "idle machine" in capsys.readouterr().err


def test_an_idle_machine_is_kept(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 1.0, 1.0))
    monkeypatch.setattr(sys, "argv", ["decisions", "--record"])
    monkeypatch.setattr(decisions, "RECORD", tmp_path / "recorded_compute.toml")
    monkeypatch.setattr(decisions, "decision_row", lambda racks, requests: {**ROWS[0], "racks": racks})
    assert decisions.main() == 0
    assert [row["racks"] for row in tomllib.loads(decisions.RECORD.read_text())["decision"]] == [120, 1000, 10_000]
    assert capsys.readouterr().out == decisions.RECORD.read_text()
