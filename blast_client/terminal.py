"""How wide what is written is, and may be. Loaded at every start of `blast`: nothing heavy is loaded for it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

TABLE_WIDTH = 100
"""Columns of a table that goes into a file or a pipe."""

_NARROWEST = 40
_STRANGE = "\N{REPLACEMENT CHARACTER}"


def columns(stream: TextIO, otherwise: int) -> int:
    """Of the terminal that `stream` is, or what the environment says, or `otherwise`."""
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns or otherwise
    except (ValueError, AttributeError, OSError):
        return otherwise


def table_width() -> int:
    """How wide a table on standard output may be."""
    return max(columns(sys.stdout, TABLE_WIDTH), _NARROWEST)


def width(text: str) -> int:
    """How many columns a terminal gives a text: two to East Asian wide characters (UAX #11), none to those combined."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def fitted(text: str, most: int) -> str:
    """The text, or as much of its beginning as leaves a column for … in `most` columns."""
    return text if width(text) <= most else f"{_beginning(text, most - 1)}…"


def fitted_in_the_middle(text: str, most: int) -> str:
    """The text, or its beginning and its end: what names something often differs at its end."""
    if width(text) <= most:
        return text
    end = _beginning(text[::-1], (most - 1) // 2)[::-1]
    return f"{_beginning(text, most - 1 - width(end))}…{end}"


def printable(text: str) -> str:
    """The text without what a terminal obeys: others than the reader may have chosen it."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else _STRANGE for sign in text)


def printable_lines(text: str) -> str:
    """As `printable`, of a text that has lines."""
    return "\n".join(map(printable, text.split("\n")))


def padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells of a line, each in so many columns, two spaces apart."""
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell + " " * (wide - width(cell)) for cell, wide in pairs).rstrip()


def _beginning(text: str, most: int) -> str:
    used = 0
    for index, sign in enumerate(text):
        used += _columns_of(sign)
        if used > most:
            return text[:index].rstrip()
    return text


def _columns_of(sign: str) -> int:
    import unicodedata

    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
