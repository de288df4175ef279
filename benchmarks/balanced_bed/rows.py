"""Rows of results: as tables for people, as CSV for `blast figures balanced`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blast_sim.base.text import table

Row = dict[str, Any]
FIGURE_7 = ("root", "method", "planned", "measured")
FIGURE_8 = ("clusters", "nodes", "planned", "measured")
"""Rates in bits of data per second."""


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """These columns of the rows; the columns of the others are left out."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def as_table(rows: Sequence[Row]) -> str:
    """Rates in Mbit/s."""
    columns = list(rows[0])
    return table(columns, [[_cell(column, row[column]) for column in columns] for row in rows])


def _cell(column: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value / 1e6:.2f}" if column in {"planned", "measured", "wire"} else f"{value:.3g}"
    return str(value)
