"""Differences between two moments, one sentence each.

Only the two moments are compared: changes in between that cancel out are not listed, nor are times, which restart with
every run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from blast_base.json_types import JsonObject
from blast_controller.history import rows
from blast_controller.history.encoder import Rows

Row = JsonObject | None
_NONE: JsonObject = {}
MAX_DIFFERENCES = 1000
"""Sentences for people, who read no more of them."""
LONGEST_LIST = 8
"""Names in one sentence, which should fit into two lines of a terminal."""


class Difference(NamedTuple):
    """The name of the row that differs, and how."""

    name: str
    sentence: str


class Differences(NamedTuple):
    """The first of them, and how many rows more differ."""

    found: list[Difference]
    left_off: int


def differences(before: Rows, after: Rows, limit: int = MAX_DIFFERENCES) -> Differences:
    """Return the differences of rows, devices and elements first.

    Raises ValueError, TypeError, KeyError or AttributeError for an invalid row.
    """
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    names.sort(key=_order)
    found: list[Difference] = []
    for place, name in enumerate(names):
        if len(found) >= limit:
            return Differences(found[:limit], len(names) - place)
        sentences = _sentences(name, _row(before.get(name)), _row(after.get(name)))
        found += [Difference(name, sentence) for sentence in sentences]
    return Differences(found[:limit], 0)


def _row(text: str | None) -> Row:
    found = None if text is None else json.loads(text)
    if not isinstance(found, dict | None):
        raise ValueError("a row is not an object")
    return found


def _order(name: str) -> tuple[int, int, str]:
    kind, _, own = name.partition("/")
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS), int(own) if own.isdecimal() else 0, own


def _sentences(name: str, before: Row, after: Row) -> Iterator[str]:
    kind, _, own = name.partition("/")
    yield from _FIELDS.get(kind, _anything)(own or kind, before, after)


def _anything(own: str, before: Row, after: Row) -> Iterator[str]:
    yield f"{own} has changed" if before and after else f"{own} has {'come' if after else 'gone'}"


def _away(device: str, before: Row, after: Row) -> Iterator[str]:
    yield f"{device} is connected" if after is None else f"{device} is disconnected: {after['reason']}"


def _unit(_unit: str, before: Row, after: Row) -> Iterator[str]:
    """Describe changes of faults; trees describe their holders."""
    was, now = before or _NONE, after or _NONE
    for element in sorted({*was, *now}):
        old, new = (side.get(element, _NONE).get("unusable") for side in (was, now))
        if old != new:
            yield f"{element} is usable" if new is None else f"{element} is unusable: {new}"


def _fabric(_name: str, before: Row, after: Row) -> Iterator[str]:
    old, new = (", ".join(fabric_summary(side)) if side else "none" for side in (before, after))
    yield f"fabric changed: {old} -> {new}"


def fabric_summary(row: JsonObject) -> list[str]:
    """Summarize a fabric in numbers."""
    kinds = {
        "racks": ("rack", "racks"),
        "splitters": ("splitter", "splitters"),
        "opticalSwitches": ("optical switch", "optical switches"),
    }
    return [f"{(n := len(row[kind]))} {words[n != 1]}" for kind, words in kinds.items()]


def _warm(_name: str, before: Row, after: Row) -> Iterator[str]:
    old, new = ((side or _NONE).get("trees", 0) for side in (before, after))
    if old != new:
        yield f"warm trees: {old} -> {new}"


def _tree(number: str, before: Row, after: Row) -> Iterator[str]:
    whose = after or before or _NONE
    old, new = (side["state"] if side else None for side in (before, after))
    subject = f"tree {number} of {whose['tenant']}/{whose['key']}"
    if old is None or new is None:
        yield f"{subject}: {new}, new" if new else f"{subject}: removed, was {old}"
        return
    if old != new:
        yield f"{subject}: {old} -> {new}"
    yield from _members(subject, (before or _NONE)["leafRacks"], (after or _NONE)["leafRacks"])


def _request(name: str, before: Row, after: Row) -> Iterator[str]:
    if after is None:
        yield f"request {name}: forgotten, was {(before or _NONE)['state']}"
        return
    reason = "; ".join(dict.fromkeys(part["reason"] for part in after["parts"] if part.get("reason")))
    suffix = f" ({reason})" if reason else ""
    if before is None:
        yield f"request {name}: new, {after['state']}{suffix}"
        return
    if before["state"] != after["state"]:
        yield f"request {name}: {before['state']} -> {after['state']}{suffix}"
    elif (old := len(before["parts"])) != (new := len(after["parts"])):
        yield f"request {name}: {old} -> {new} parts"
    elif _reasons(before) != _reasons(after):
        yield f"request {name}: {after['state']}{suffix}"
    yield from _members(f"request {name}", before["receivers"], after["receivers"])


def _reasons(row: JsonObject) -> list[object]:
    return [(part["state"], part.get("reason")) for part in row["parts"]]


def _members(subject: str, before: list[str], after: list[str]) -> Iterator[str]:
    for word, some, others in (("now with", after, before), ("now without", before, after)):
        known = set(others)
        if found := [name for name in some if name not in known]:
            more = f" and {len(found) - LONGEST_LIST} more" if len(found) > LONGEST_LIST else ""
            yield f"{subject}: {word} {', '.join(found[:LONGEST_LIST])}{more}"


_FIELDS: dict[str, Callable[[str, Row, Row], Iterator[str]]] = {
    rows.FABRIC: _fabric,
    "away": _away,
    "unit": _unit,
    rows.WARM: _warm,
    "tree": _tree,
    "request": _request,
}
_KINDS = list(_FIELDS)
