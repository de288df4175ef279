"""Results as JSON, CSV or a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from blast_base.json_types import JsonObject
from blast_sim.base.provenance import Provenance, of_comment_lines
from blast_sim.base.text import table

Row = JsonObject
"""One line of results."""


def as_json(rows: Sequence[Row], provenance: Provenance) -> str:
    """Return {"provenance": {…}, "cells": rows}, a row a line."""
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    return f'{{"provenance": {json.dumps(provenance.as_dict())},\n "cells": [\n  {lines}\n]}}\n'


def as_csv(rows: Sequence[Row], provenance: Provenance | None = None) -> str:
    """Return rows under their columns, with the lines of their provenance before them."""
    text = io.StringIO()
    if provenance is not None:
        text.write(provenance.as_comment_lines())
    writer = csv.DictWriter(text, columns_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def from_csv(text: str) -> tuple[JsonObject, list[Row]]:
    """Return the provenance of a CSV text (empty: it has none) and its rows, each value as text.

    Raises ValueError for a line of provenance that is none.
    """
    provenance, rest = of_comment_lines(text)
    return provenance, list(csv.DictReader(io.StringIO(rest)))


def without_provenance(lines: Iterable[str]) -> tuple[int, Iterator[str]]:
    """Return how many lines of provenance a CSV file begins with, and the other lines."""
    rest = iter(lines)
    for count, line in enumerate(rest):
        if not line.startswith("#"):
            return count, chain([line], rest)
    return 0, iter(())


def as_table(rows: Sequence[Row]) -> str:
    """Return rows as a text table, floats to four significant digits."""
    columns = columns_of(rows)
    return table(columns, [[_shown(row.get(column, "")) for column in columns] for row in rows]) + "\n"


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return every column that any row has, in order of appearance."""
    return list(dict.fromkeys(column for row in rows for column in row))


def _shown(value: str | int | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
