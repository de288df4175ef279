"""Text tables for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from blast_client.cli.terminal import fitted, fitted_in_the_middle, padded, printable, width

_MIN_WIDTH = 8
"""Minimum width of a column, unless its header is wider."""
_MIN_NAME = 20
"""Columns that keep most names whole in a narrow terminal."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], max_width: int = sys.maxsize) -> str:
    """Return rows under a header; each column is as wide as its widest cell.

    If a line would exceed `max_width`, the widest columns are shortened. The first column, which names the row, is
    shortened last, and in its middle.
    """
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = _narrowed([max(map(width, column)) for column in zip(*lines, strict=True)], header, max_width)
    return "\n".join(padded(_cut(line, widths), widths) for line in lines)


def shortened(names: Sequence[str], limit: int = 6) -> str:
    """Return names with commas between them; above `limit` only the first, and the number of the others."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} … {len(names) - limit} more"


def _narrowed(widths: list[int], header: Sequence[str], max_width: int) -> list[int]:
    minimum = [max(_MIN_WIDTH, width(name)) for name in header]
    minimum[0] = max(minimum[0], _MIN_NAME)
    over = sum(widths) + 2 * (len(widths) - 1) - max_width
    for group in (range(1, len(widths)), range(1)):
        while over > 0 and (wide := [column for column in group if widths[column] > minimum[column]]):
            widths[max(wide, key=widths.__getitem__)] -= 1
            over -= 1
    return widths


def _cut(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [fitted_in_the_middle(line[0], widths[0]), *map(fitted, line[1:], widths[1:])]
