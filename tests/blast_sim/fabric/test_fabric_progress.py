"""The bar over cells: those that are over, and the shares of those that are under way."""

from __future__ import annotations

import sys

import pytest

from blast_sim.fabric.progress import Bar


def test_cells_under_way_count_by_their_share(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
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


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar(1) as bar, bar.under_way() as heard:
        heard(0.5)
        bar.finished(1)
    assert capsys.readouterr().err == ""
