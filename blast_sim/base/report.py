"""Results as JSON, CSV or a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from blast_sim.base.text import table

Row = dict[str, Any]
"""One line of results."""


def as_json(rows: Sequence[Row]) -> str:
    """{"cells": rows}, a row a line."""
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    return f'{{"cells": [\n  {lines}\n]}}\n'


def as_csv(rows: Sequence[Row]) -> str:
    """Rows under their columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_table(rows: Sequence[Row]) -> str:
    """The same for reading, numbers to four digits."""
    columns = columns_of(rows)
    return table(columns, [[_shown(row.get(column, "")) for column in columns] for row in rows]) + "\n"


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Every column that any row has, in order of appearance."""
    return list(dict.fromkeys(column for row in rows for column in row))


def _shown(value: str | int | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
