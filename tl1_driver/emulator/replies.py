"""Replies of the emulated switch: TL1 messages as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tl1_driver.emulator.crossbar import RefusalError


def message(sid: str, date: datetime, second_line: str, body: Sequence[str] = (), end: str = ";") -> str:
    """Return one message, or one part of it if `end` is `>`."""
    lines = "".join(f"   {line}\r\n" for line in body)
    return f"\r\n\n   {sid} {date:%y-%m-%d %H:%M:%S}\r\n{second_line}\r\n{lines}{end}"


def answer(sid: str, date: datetime, ctag: str, rows: Sequence[str], rows_per_part: int = 0) -> list[str]:
    """Return a COMPLD message, in parts of `rows_per_part` rows unless that is 0."""
    size = rows_per_part or max(1, len(rows))
    parts = [rows[first : first + size] for first in range(0, len(rows), size)] or [()]
    ends = [">"] * (len(parts) - 1) + [";"]
    second_line = f"M  {ctag} COMPLD"
    return [message(sid, date, second_line, part, end) for part, end in zip(parts, ends, strict=True)]


def denial(sid: str, date: datetime, ctag: str, refusal: RefusalError) -> str:
    """Return a DENY or PRTL message with its error code and a comment."""
    return message(sid, date, f"M  {ctag} {refusal.completion}", [refusal.code, f"/* {refusal.text} */"])
