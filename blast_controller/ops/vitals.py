"""The controller's vital signs, one point a second: what a page draws as lines, and what it says of the controller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from blast_controller.core.model.commands import Command, Publish
from blast_controller.core.model.requests import EventKind
from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.ops.drift import Drift

POINTS = 600
"""Ten minutes."""
MAX_GRANTS = 4096
"""Whose times are kept until the next point."""


class Point(NamedTuple):
    """Seconds since 1970; parts that wait; trees on devices; grants since the point before, and their median time in
    milliseconds, None without one."""

    wall: float
    waiting: int
    trees: int
    granted: int
    grant_ms: float | None


class Vitals(Observer):
    """An observer of the runtime, and what it has seen. `sample` is called once a second, from one other thread."""

    def __init__(self) -> None:
        self.history: deque[Point] = deque(maxlen=POINTS)
        self._grants: deque[float] = deque(maxlen=MAX_GRANTS)
        self._granted = self._told = 0

    def sample(self, snapshot: Snapshot, wall: float) -> Point:
        """The next point."""
        granted = self._granted
        times = [self._grants.popleft() for _ in range(len(self._grants))]
        point = Point(
            round(wall, 3),
            snapshot.waiting_of(None),
            len(snapshot.trees),
            granted - self._told,
            round(1000 * median(times), 2) if times else None,
        )
        self._told = granted
        self.history.append(point)
        return point

    def on_command(self, command: Command) -> None:
        """A grant is told."""
        match command:
            case Publish(event=event) if event.kind is EventKind.GRANTED and event.grant is not None:
                self._granted += 1
                self._grants.append(event.grant.timings.total)


@dataclass(frozen=True, slots=True)
class Condition:
    """What to ask of the controller itself: its epoch (0: it stands by); who leads otherwise, and how many seconds ago
    it was as shown; why nothing is decided or written; whether it is drained; what devices hold that is not ours; and
    what its servers count."""

    epoch: Callable[[], int]
    leader: Callable[[], str | None]
    stale: Callable[[], float | None]
    holding: Callable[[], str | None]
    store_fault: Callable[[], str | None]
    draining: Callable[[], bool]
    drift: Drift
    counts: Callable[[], Mapping[str, float]]

    def told(self) -> dict[str, object]:
        """All of it, as JSON has it."""
        epoch = self.epoch()
        return {
            "leader": {
                "leads": epoch > 0,
                "epoch": epoch,
                "leader": self.leader(),
                "staleSeconds": self.stale(),
            },
            "holding": self.holding(),
            "storeFault": self.store_fault(),
            "draining": self.draining(),
        }
