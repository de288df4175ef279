"""The progress bar counts finished cells and the progress of running cells."""

from __future__ import annotations

import sys

import pytest

from blast_sim.fabric.progress import Bar


def test_bar_counts_the_share_of_running_cells(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bar(4) as bar:
        bar.finished(1)
        with bar.under_way() as one, bar.under_way() as other:
            one(0.5)
            other(0.25)
            one(0.75)
        bar.finished(2)
    shown = capsys.readouterr().err
    steps = ["1.00/4", "1.50/4", "1.75/4", "2.00/4", "3.00/4"]
    assert [shown.find(step) for step in steps] == sorted(shown.find(step) for step in steps)
    assert -1 not in [shown.find(step) for step in steps]


def test_bar_is_hidden_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar(1) as bar, bar.under_way() as report:
        report(0.5)
        bar.finished(1)
    assert capsys.readouterr().err == ""
