"""Rows of the autonomous messages `REPT ALM` and `REPT EVT`.

A row is `"AID:NTFCNCDE,CONDTYPE,SRVEFF,OCRDAT,OCRTM,LOCN,DIRN:text"` (GR-833); switches omit trailing fields.
Notification codes are CR, MJ, MN, NA and CL (cleared); DIRN is RCV for light entering, TRMT for light leaving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tl1_driver.protocol.payload import split_blocks, unquote

CLEARED = "CL"
"""Notification code of a condition that has ended."""
DIRECTION = 6
"""Position of the direction in the text block of an alarm."""
RECEIVED = "RCV"
LEAVING = "TRMT"


@dataclass(frozen=True, slots=True)
class AlarmRow:
    """A row as received; `direction` is RCV, TRMT or empty."""

    aid: str
    notification: str
    condition: str
    direction: str = ""


def read_rows(lines: Sequence[str]) -> list[AlarmRow]:
    """Return the rows that name an element and its condition; other rows are skipped."""
    return [row for row in map(_row, lines) if row is not None]


def _row(line: str) -> AlarmRow | None:
    aid, *blocks = split_blocks(unquote(line))
    fields = [field.strip() for field in blocks[0].split(",")] if blocks else []
    if not aid or len(fields) < 2 or not fields[1]:
        return None
    direction = fields[DIRECTION].upper() if len(fields) > DIRECTION else ""
    # An AID may be followed by its type.
    return AlarmRow(aid.split(",")[0].strip(), fields[0].upper(), fields[1].upper(), direction)
