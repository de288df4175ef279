"""Replies of the emulated switch: TL1 messages as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from tl1_driver.emulator.faults import Completion, Tl1Faults

NO_CTAG = "0"

ERROR_CODES: Mapping[SwitchRefusal, str] = {
    SwitchRefusal.UNKNOWN_PORT: "IIAC",
    SwitchRefusal.IN_USE: "SNVS",
    SwitchRefusal.NOT_CONNECTED: "SDNC",
    SwitchRefusal.FAILED: "SROF",
    SwitchRefusal.LOCKED: "SLOC",
    SwitchRefusal.SESSIONS_FULL: "SARB",
    SwitchRefusal.WRONG_TARGET: "IITA",
    SwitchRefusal.UNKNOWN_COMMAND: "IICM",
    SwitchRefusal.INVALID_VALUE: "IPNV",
    SwitchRefusal.NOT_LOGGED_IN: "PLNA",
    SwitchRefusal.WRONG_USER: "PIUI",
}
"""No refusal of a real switch is on record; these are the usual TL1 codes (GR-831) for these cases."""


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


def refused(sid: str, date: datetime, ctag: str, refusal: RefusalError, faults: Tl1Faults) -> list[str]:
    """Return the answer to a refused command: DENY, or what injected faults make of it."""
    completion = faults.completion(refusal)
    if completion == "COMPLD":
        return answer(sid, date, ctag, [])
    return [denial(sid, date, NO_CTAG if faults.ctag_lost else ctag, refusal, completion)]


def denial(sid: str, date: datetime, ctag: str, refusal: RefusalError, completion: Completion = "DENY") -> str:
    """Return a DENY or PRTL message with its error code and a comment."""
    return message(sid, date, f"M  {ctag} {completion}", [ERROR_CODES[refusal.reason], f"/* {refusal.text} */"])
