"""What became of the honest clients' calls, by phase: how many were completed, and how long they took."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ALL = "all calls"
SEND = "blast send"
"""A transfer is no call: its seconds would be the slowest hundredth of all calls by themselves."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was due at `at` (seconds of the steady clock), and took `seconds`.

    `fault` says why it was not completed, and is empty for one that was.
    """

    kind: str
    at: float
    seconds: float
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """A slice of the run as it came to pass, in seconds of the steady clock."""

    phase: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Figures:
    """Calls of one kind in one phase; times in seconds, of the completed ones only, None where there are none."""

    due: int
    completed: int
    p50: float | None
    p99: float | None
    longest: float | None

    @property
    def completion(self) -> float | None:
        """The share that was completed."""
        return self.completed / self.due if self.due else None


def in_phase(calls: Iterable[Call], windows: Sequence[Window], phase: str) -> list[Call]:
    """The calls that were due in a phase; those of the pauses belong to none."""
    spans = [(window.begin, window.end) for window in windows if window.phase == phase]
    return [call for call in calls if any(begin <= call.at < end for begin, end in spans)]


def figures(calls: Sequence[Call]) -> Figures:
    """Of these calls, whatever their kinds."""
    times = sorted(call.seconds for call in calls if not call.fault)
    if not times:
        return Figures(len(calls), 0, None, None, None)
    return Figures(len(calls), len(times), statistics.median(times), quantile(times, 0.99), times[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed (nearest rank); `ordered` is not empty."""
    rank = max(1, -(-len(ordered) * share // 1))
    return ordered[min(len(ordered), int(rank)) - 1]


def by_kind(calls: Sequence[Call]) -> Mapping[str, Figures]:
    """All calls together, then each kind by itself, in the order of their names."""
    kinds = sorted({call.kind for call in calls})
    found = {ALL: figures([call for call in calls if call.kind != SEND])}
    return found | {kind: figures([call for call in calls if call.kind == kind]) for kind in kinds}


def slowest(calls: Iterable[Call], most: int) -> list[Call]:
    """Of the calls that were completed those that took longest, the longest first; transfers are none."""
    completed = (call for call in calls if not call.fault and call.kind != SEND)
    return sorted(completed, key=lambda call: call.seconds, reverse=True)[:most]


def ratio(soak: float | None, baseline: float | None) -> float | None:
    """How many times as long, where both are known."""
    return soak / baseline if soak is not None and baseline else None


def faults(calls: Iterable[Call], most: int = 8) -> list[tuple[str, int]]:
    """Why calls were not completed, the most frequent reasons first."""
    return Counter(f"{call.kind}: {call.fault}" for call in calls if call.fault).most_common(most)
