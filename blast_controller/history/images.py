"""Rows as of a moment, and what many moments come to: names, then rows, each a line; before them names that are gone.

A large image is in several texts, so that none needs much memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from blast_controller.history.compression import DecompressionError
from blast_controller.history.encoder import Difference, Rows
from blast_controller.history.lines import from_lines, to_lines

TEXT_BYTES = 8 << 20
"""Bytes of uncompressed text in one image, which a reader holds in memory as a whole."""


def image_texts(rows: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the rows; None are gone. At least one text."""
    some: Difference = {}
    size = 0
    for name, row in rows.items():
        some[name] = row
        size += len(name) + len(row or "")
        if size > TEXT_BYTES:
            yield _text(some)
            some, size = {}, 0
    yield _text(some)


def _text(rows: Mapping[str, str | None]) -> str:
    removed = to_lines(sorted(name for name, row in rows.items() if row is None))
    there = sorted((name, row) for name, row in rows.items() if row is not None)
    return "\n".join([str(len(removed)), *removed, *to_lines(name for name, _ in there), *(row for _, row in there)])


def apply_image(texts: Iterable[str], rows: Rows) -> None:
    """Replace the rows by those of the image. Raises DecompressionError."""
    for text in texts:
        head, _, rest = text.partition("\n")
        lines = rest.split("\n") if rest else []
        if not head.isdecimal() or len(head) > 9 or (len(lines) - (count := int(head))) % 2 or count > len(lines):
            raise DecompressionError("an image's numbers of rows and names differ")
        middle = count + (len(lines) - count) // 2
        for name in from_lines(lines[:count]):
            rows.pop(name, None)
        rows.update(zip(from_lines(lines[count:middle]), lines[middle:], strict=True))
