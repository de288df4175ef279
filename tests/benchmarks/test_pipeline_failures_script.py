"""The benchmark of failing nodes: its results from given transfers. The lab's tests run real transfers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FAILURES = ("killed", "frozen", "vanished")


@pytest.fixture(autouse=True)
def no_signal_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.transfers import pipeline_failures

    monkeypatch.setattr(pipeline_failures, "end_in_order", lambda *_: None)
    monkeypatch.setattr(pipeline_failures.machine, "describe", lambda: "a machine")


class Carried:
    """Transfers of 40 s, and a time-out more for every moment at which some fail silently."""

    def __init__(self, wrong: str = "") -> None:
        self.transfers: list[tuple[str, int]] = []
        self.wrong = wrong

    def carry(self, limit: float, mode: Any = None, moments: Any = ()) -> Any:
        from benchmarks.transfers.bed.struck import Struck

        name = mode.name if mode else "none"
        self.transfers.append((name, sum(len(hosts) for _, hosts in moments)))
        if name == self.wrong:
            return Struck(limit, limit, {}, ("h1 failed",))
        seconds = 40.0 + (len(moments) if name in {"frozen", "vanished"} else 0)
        return Struck(seconds, seconds + 5, {"receivers": []}, ())


def run(monkeypatch: pytest.MonkeyPatch, carried: Carried, *words: str) -> bool:
    from benchmarks.transfers import pipeline_failures

    @contextmanager
    def standing(*_: object) -> Iterator[Carried]:
        yield carried

    monkeypatch.setattr(pipeline_failures, "_standing", standing)
    monkeypatch.setattr(sys, "argv", ["pipeline_failures.py", "--megabytes", "80", *words])
    return pipeline_failures.main()


def test_json_has_row_with_lost_seconds_for_each_case(monkeypatch, capsys):
    carried = Carried()
    assert run(monkeypatch, carried, "--repeats", "2", "--json")
    rows = json.loads(capsys.readouterr().out)["failures"]
    assert len(carried.transfers) == 1 + 2 * (1 + 3 * 6), "one is thrown away"
    assert sorted(carried.transfers)[:6] == [("frozen", victims) for victims in (2, 2, 2, 2, 5, 5)]
    found = {(row["way"], row["scenario"]): row for row in rows}
    assert len(found) == 19 and all(len(row["seconds"]) == 2 for row in rows)
    assert found["none", "no failure"]["lost_seconds"] == 0
    assert {row["right"] for row in rows} == {2}
    assert [found[way, "10 % at once"]["lost_seconds"] for way in FAILURES] == [0, 1, 1]
    assert [found[way, "10 % one after the other"]["lost_seconds"] for way in FAILURES] == [0, 10, 10]
    assert {row["sender_seconds"][0] - row["seconds"][0] for row in rows} == {5}


def test_kept_results_are_not_measured_again_and_failures_stay(monkeypatch, capsys, tmp_path):
    options = ("--keep", str(tmp_path / "keep"), "--ways", "killed")
    assert not run(monkeypatch, Carried("killed"), "--repeats", "1", *options)
    first = capsys.readouterr().out
    assert "h1 failed" in first and "all others complete" in first
    again = Carried()
    assert not run(monkeypatch, again, "--repeats", "1", *options)
    assert again.transfers == []
    assert capsys.readouterr().out == first
    more = Carried()
    assert not run(monkeypatch, more, "--repeats", "2", *options)
    assert len(more.transfers) == 1 + 7
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--nodes", "9"], "no node fails: give at least 10"),
        (["--rate", "unshaped"], "'unshaped' is not a number above 0"),
        (["--rate", "nan"], "'nan' is not a number above 0"),
        (["--ways", "killed,drowned"], "unknown: drowned: choose from"),
    ],
)
def test_invalid_options_are_rejected_with_a_sentence(monkeypatch, capsys, words, sentence):
    with pytest.raises(SystemExit):
        run(monkeypatch, Carried(), *words)
    assert sentence in capsys.readouterr().err
