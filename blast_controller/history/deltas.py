"""Deltas of a row: the lengths of its common beginning and end, and the text between them.

Most changes affect only a state or a number; storing the row completely would repeat its receivers every time.
"""

from __future__ import annotations

from blast_controller.history.compression import DecompressionError

REMOVED = ""
_OWN_NAME = "\x01"
"""Stands for the row's name: JSON has no such character."""
_LARGEST_ROW = 16 << 20
"""Bytes of an expanded row: a damaged recording must not fill the memory."""


def delta(name: str, before: str | None, after: str | None) -> str:
    """Return the delta of a row."""
    if after is None:
        return REMOVED
    if before is None:
        # All units that one tree takes then read the same.
        own = _own(name)
        return after.replace(own, _OWN_NAME) if own else after
    begin = _common(before, after, min(len(before), len(after)))
    end = _common_end(before, after, min(len(before), len(after)) - begin)
    return f"{begin} {end} {after[begin : len(after) - end]}"


def changed(name: str, before: str | None, line: str) -> str | None:
    """Return the row after a delta. Raises DecompressionError."""
    if line == REMOVED:
        return None
    if line[0] == "{":
        own = _own(name)
        if line.count(_OWN_NAME) * len(own) > _LARGEST_ROW:
            raise DecompressionError("a row is too long")
        return line.replace(_OWN_NAME, own) if own else line
    if before is None:
        raise DecompressionError(f"{name!r} changes but did not exist")
    try:
        first, second, middle = line.split(" ", 2)
        begin, end = int(first), int(second)
    except ValueError as error:
        raise DecompressionError("a change of a row is malformed") from error
    keep = len(before) - end
    if not 0 <= begin <= keep <= len(before) or len(before) + len(middle) > _LARGEST_ROW:
        raise DecompressionError("a change of a row does not fit the row")
    return before[:begin] + middle + before[keep:]


def _own(name: str) -> str:
    kind, _, own = name.partition("/")
    return own if kind == "unit" else ""


def _common(one: str, other: str, limit: int) -> int:
    """Return the length of the common beginning, by bisection, because comparing slices is fast."""
    minimum, over = 0, limit + 1
    while over - minimum > 1:
        middle = (minimum + over) // 2
        if one[minimum:middle] == other[minimum:middle]:
            minimum = middle
        else:
            over = middle
    return minimum


def _common_end(one: str, other: str, limit: int) -> int:
    minimum, over = 0, limit + 1
    while over - minimum > 1:
        middle = (minimum + over) // 2
        if one[len(one) - middle : len(one) - minimum] == other[len(other) - middle : len(other) - minimum]:
            minimum = middle
        else:
            over = middle
    return minimum
