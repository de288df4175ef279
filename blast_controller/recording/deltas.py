"""A row against what it was before: how many characters at its beginning and its end stay, and what is between them.

A row is most often itself again but for a state or a number, and keeping it whole would tell its receivers every time.
"""

from __future__ import annotations

from blast_controller.recording.compression import Unreadable

GONE = ""
_OWN_NAME = "\x01"
"""Stands for the row's name: JSON has no such character."""
_LARGEST_ROW = 16 << 20


def delta(name: str, before: str | None, after: str | None) -> str:
    """What becomes of a row."""
    if after is None:
        return GONE
    if before is None:
        # All units that one tree takes then read the same.
        own = _own(name)
        return after.replace(own, _OWN_NAME) if own else after
    begin = _common(before, after, min(len(before), len(after)))
    end = _common_end(before, after, min(len(before), len(after)) - begin)
    return f"{begin} {end} {after[begin : len(after) - end]}"


def changed(name: str, before: str | None, line: str) -> str | None:
    """The row after a delta. Raises Unreadable."""
    if line == GONE:
        return None
    if line[0] == "{":
        own = _own(name)
        if line.count(_OWN_NAME) * len(own) > _LARGEST_ROW:
            raise Unreadable("a row is too long")
        return line.replace(_OWN_NAME, own) if own else line
    if before is None:
        raise Unreadable(f"{name!r} changes and was not there")
    try:
        first, second, middle = line.split(" ", 2)
        begin, end = int(first), int(second)
    except ValueError as error:
        raise Unreadable("a change of a row cannot be read") from error
    keep = len(before) - end
    if not 0 <= begin <= keep <= len(before) or len(before) + len(middle) > _LARGEST_ROW:
        raise Unreadable("a change of a row does not fit the row")
    return before[:begin] + middle + before[keep:]


def _own(name: str) -> str:
    kind, _, own = name.partition("/")
    return own if kind == "unit" else ""


def _common(one: str, other: str, most: int) -> int:
    """How many characters at the beginning are the same: by halves, for comparing slices is fast."""
    least, over = 0, most + 1
    while over - least > 1:
        middle = (least + over) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            over = middle
    return least


def _common_end(one: str, other: str, most: int) -> int:
    least, over = 0, most + 1
    while over - least > 1:
        middle = (least + over) // 2
        if one[len(one) - middle : len(one) - least] == other[len(other) - middle : len(other) - least]:
            least = middle
        else:
            over = middle
    return least
