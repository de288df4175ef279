"""Names as lines. A row is JSON without line breaks; names contain text chosen by clients and need escapes."""

from __future__ import annotations

from collections.abc import Iterable


def to_lines(names: Iterable[str]) -> list[str]:
    """Return a line for each name."""
    return [_escaped(name) if "\n" in name or "\\" in name else name for name in names]


def from_lines(lines: list[str]) -> list[str]:
    """Return the names."""
    return [_unescaped(line) if "\\" in line else line for line in lines]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("\n", "\\n")


def _unescaped(line: str) -> str:
    return "\\".join(piece.replace("\\n", "\n") for piece in line.split("\\\\"))
