"""Columns of text for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from blast_client.terminal import fitted, fitted_in_the_middle, padded, printable, width

_LEAST = 8
"""No column is made narrower than this, or than its header."""
_MIN_NAME = 20


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], most: int = sys.maxsize) -> str:
    """Rows under a header, columns as wide as their widest cell.

    Where a line would have more than `most` columns the widest ones are shortened; the first, which names the row, only
    when nothing else is left to shorten, and so that its beginning and its end remain.
    """
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = _narrowed([max(map(width, column)) for column in zip(*lines, strict=True)], header, most)
    return "\n".join(padded(_cut(line, widths), widths) for line in lines)


def shortened(names: Sequence[str], most: int = 6) -> str:
    """Names with commas between; of many only the first, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} … {len(names) - most} more"


def _narrowed(widths: list[int], header: Sequence[str], most: int) -> list[int]:
    least = [max(_LEAST, width(name)) for name in header]
    least[0] = max(least[0], _MIN_NAME)
    over = sum(widths) + 2 * (len(widths) - 1) - most
    for group in (range(1, len(widths)), range(1)):
        while over > 0 and (wide := [column for column in group if widths[column] > least[column]]):
            widths[max(wide, key=widths.__getitem__)] -= 1
            over -= 1
    return widths


def _cut(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [fitted_in_the_middle(line[0], widths[0]), *map(fitted, line[1:], widths[1:])]
