"""A moment of the past as text for a terminal: the fabric, what is out of order, and the requests of then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from blast_base.json_types import JsonObject
from blast_controller.history import rows
from blast_controller.history.differences import fabric_summary
from blast_controller.history.past import Gap, Past, RecordedSpan

LIVE = ("active", "configuring", "pending")
"""States of requests that are shown one by one, in this order."""

Parsed = Mapping[str, JsonObject]


def parsed(past: Past) -> JsonObject:
    """Return the rows as objects. Raises ValueError for invalid JSON."""
    return {name: json.loads(row) for name, row in past.rows.items()}


def past_lines(past: Past, limit: int) -> Iterator[str]:
    """Yield lines about a moment, with at most `limit` requests and elements. Raises ValueError for a malformed row."""
    found = parsed(past)
    run = past.run
    yield f"{when(past.wall)}  moment {past.sequence}, epoch {run.epoch} of {run.instance}, release {run.release}"
    if past.gap is not None:
        yield f"not recorded  {gap_line(past.gap)}"
    fabric = found.get(rows.FABRIC)
    trees = Counter(tree["state"] for tree in _of(found, "tree").values())
    yield f"fabric        {', '.join(fabric_summary(fabric)) if fabric else 'none'}"
    yield f"trees         {_counted(trees)}"
    disconnected = [f"{device}: {row['reason']}" for device, row in _of(found, "away").items()]
    yield from _listed("disconnected", disconnected, limit)
    unusable = [
        f"{element}: {standing['unusable']}"
        for unit in _of(found, "unit").values()
        for element, standing in unit.items()
        if standing.get("unusable")
    ]
    yield from _listed("unusable", unusable, limit)
    requests = list(_of(found, "request").values())
    yield f"requests      {_counted(Counter(request['state'] for request in requests))}"
    live = sorted((r for r in requests if r["state"] in LIVE), key=lambda r: (LIVE.index(r["state"]), r["arrival"]))
    yield from _listed("", [_request(request, past.now) for request in live], limit)


def _of(found: Parsed, kind: str) -> dict[str, JsonObject]:
    return {name.partition("/")[2]: row for name, row in found.items() if name.startswith(f"{kind}/")}


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.most_common()) or "none"


def _listed(head: str, lines: list[str], limit: int) -> Iterator[str]:
    for place, line in enumerate(lines[:limit]):
        yield f"{head if place == 0 else '':<14}{line}"
    if len(lines) > limit:
        yield f"{'':<14}… {len(lines) - limit} more"


def _request(row: JsonObject, now: float) -> str:
    reasons = dict.fromkeys(part["reason"] for part in row["parts"] if part.get("reason"))
    reason = f": {'; '.join(reasons)}" if reasons else ""
    count = len(row["receivers"])
    to = f"{count} receiver{'s' if count != 1 else ''}"
    age = now - row["receivedAt"]
    return (
        f"{row['state']:<12} {row['tenant']}/{row['key']}  {row['sender']} -> {to}, received {age:.0f} s before{reason}"
    )


def span_line(span: RecordedSpan) -> str:
    """Describe the recorded period."""
    return f"recorded from {when(span.oldest.wall)} to {when(span.newest.wall)}"


def gap_line(gap: Gap) -> str:
    """Describe a period without recording."""
    until = "" if gap.until is None else f" to {when(gap.until)}"
    return f"from {when(gap.after)}{until}: {gap.reason}"


def when(wall: float) -> str:
    """Return a wall time here."""
    try:
        return datetime.fromtimestamp(wall).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{wall:g} s"


def for_terminal(lines: Iterable[str]) -> Iterator[str]:
    """Escape control characters: clients choose keys and devices reasons, and neither may control the terminal."""
    for line in lines:
        yield "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line).rstrip()
