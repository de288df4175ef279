"""Text tables: their width, and the shortening of wide columns."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_client.cli import terminal
from blast_client.cli.terminal import columns, fitted, fitted_in_the_middle, printable, width
from blast_client.cli.text_table import text_table

CELLS = st.text(max_size=60)
TABLES = st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5))


@pytest.mark.parametrize(
    ("text", "wide"), [("", 0), ("abc", 3), ("列車", 4), ("e\N{COMBINING ACUTE ACCENT}", 1), ("é", 1), ("😀", 2)]
)
def test_width_matches_terminal_columns(text, wide):
    assert width(text) == wide


def test_table_aligns_wide_characters():
    assert text_table(["KEY", "N"], [["列車", "1"], ["ab", "2"]]) == "KEY   N\n列車  1\nab    2"


def test_table_shortens_widest_column_first_and_name_last():
    table = text_table(["KEY", "TO", "NOTE"], [["a" * 30, "b" * 12, "c" * 50]], 70)
    assert table.splitlines()[1] == f"{'a' * 30}  {'b' * 12}  {'c' * 23}…"
    table = text_table(["KEY", "TO", "NOTE"], [["a" * 30 + "z", "b" * 12, "c" * 50]], 45)
    assert table.splitlines()[1] == f"{'a' * 12}…{'a' * 11}z  {'b' * 7}…  {'c' * 7}…"


@given(TABLES, st.integers(70, 120))
def test_table_lines_fit_and_are_printable(rows, max_width):
    header = [f"H{number}" for number in range(len(rows[0]))]
    lines = text_table(header, rows, max_width).split("\n")
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= max_width and line.isprintable() for line in lines)


@given(st.text(max_size=40), st.integers(1, 30))
def test_shortened_text_fits(text, max_width):
    text = printable(text)
    assert width(fitted(text, max_width)) <= max_width and width(fitted_in_the_middle(text, max_width)) <= max_width


@pytest.mark.parametrize("environment", ["", "0", "nonsense", "60"])
def test_columns_fall_back_to_default_of_caller(monkeypatch, environment):
    monkeypatch.setenv("COLUMNS", environment)
    monkeypatch.setattr(terminal.os, "get_terminal_size", lambda number: (_ for _ in ()).throw(OSError()))
    assert columns(sys.stdout, 80) == (60 if environment == "60" else 80)
