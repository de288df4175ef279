"""Width of text and of terminals. Every start of `blast` imports this module: it must not import heavy ones."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

TABLE_WIDTH = 100
"""Columns of a table in a file or pipe."""

_NARROWEST = 40
"""Columns below which a table is unreadable, so lines may wrap."""
_STRANGE = "\ufffd"
"""The replacement character, by number: compiling its name would load `unicodedata`."""


def columns(stream: TextIO, otherwise: int) -> int:
    """Return the columns from the environment variable COLUMNS, the terminal of `stream`, or else `otherwise`."""
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns or otherwise
    except (ValueError, AttributeError, OSError):
        return otherwise


def table_width() -> int:
    """Return the maximum width of a table on standard output."""
    return max(columns(sys.stdout, TABLE_WIDTH), _NARROWEST)


def width(text: str) -> int:
    """Return the columns of a text on a terminal: 2 per East Asian wide character (UAX #11), 0 per combining one."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def fitted(text: str, max_width: int) -> str:
    """Return a text, shortened at its end to at most `max_width` columns including …."""
    return text if width(text) <= max_width else f"{_beginning(text, max_width - 1)}…"


def fitted_in_the_middle(text: str, max_width: int) -> str:
    """Return a text, shortened in its middle, since names often differ at their end."""
    if width(text) <= max_width:
        return text
    end = _beginning(text[::-1], (max_width - 1) // 2)[::-1]
    return f"{_beginning(text, max_width - 1 - width(end))}…{end}"


def printable(text: str) -> str:
    """Replace control characters, since other users may have chosen the text."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else _STRANGE for sign in text)


def printable_lines(text: str) -> str:
    """Replace control characters except line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line of cells, padded to their widths, with two spaces between them."""
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell + " " * (wide - width(cell)) for cell, wide in pairs).rstrip()


def _beginning(text: str, max_width: int) -> str:
    used = 0
    for index, sign in enumerate(text):
        used += _columns_of(sign)
        if used > max_width:
            return text[:index].rstrip()
    return text


def _columns_of(sign: str) -> int:
    import unicodedata

    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
