"""The controller's vital signs, one point each second: the page's charts and the state of the controller."""

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
"""The limit of grant times kept until the next point."""


class VitalPoint(NamedTuple):
    """The vital signs at one time.

    `wall` is in seconds since 1970; `waiting` parts wait, and `trees` are on devices; `granted` is the number of grants
    since the previous point, and `grant_ms` their median time in milliseconds, None without one.
    """

    wall: float
    waiting: int
    trees: int
    granted: int
    grant_ms: float | None


class Vitals(Observer):
    """An observer of the runtime, and what it has seen. `sample` is called once a second, from one other thread."""

    def __init__(self) -> None:
        self.history: deque[VitalPoint] = deque(maxlen=POINTS)
        self._grants: deque[float] = deque(maxlen=MAX_GRANTS)
        self._granted = self._reported = 0

    def sample(self, snapshot: Snapshot, wall: float) -> VitalPoint:
        """Return the next point."""
        granted = self._granted
        times = [self._grants.popleft() for _ in range(len(self._grants))]
        point = VitalPoint(
            round(wall, 3),
            snapshot.waiting_of(None),
            len(snapshot.trees),
            granted - self._reported,
            round(1000 * median(times), 2) if times else None,
        )
        self._reported = granted
        self.history.append(point)
        return point

    def on_command(self, command: Command) -> None:
        """Record the time of a grant."""
        match command:
            case Publish(event=event) if event.kind is EventKind.GRANTED and event.grant is not None:
                self._granted += 1
                self._grants.append(event.grant.timings.total)


@dataclass(frozen=True, slots=True)
class ConditionQueries:
    """Queries of the controller's state.

    `epoch` is that of the leader (0: a standby); `leader` is the leader's address, `stale` the age of the displayed
    state in seconds; `safe_mode` and `store_fault` are why it decides or writes nothing; `draining` is true while it
    drains; `drift` is foreign state on devices, and `counts` are the counters of its servers.
    """

    epoch: Callable[[], int]
    leader: Callable[[], str | None]
    stale: Callable[[], float | None]
    safe_mode: Callable[[], str | None]
    store_fault: Callable[[], str | None]
    draining: Callable[[], bool]
    drift: Drift
    counts: Callable[[], Mapping[str, float]]

    def signs(self) -> dict[str, object]:
        """Return all of it, as JSON has it."""
        epoch = self.epoch()
        return {
            "leader": {
                "isLeader": epoch > 0,
                "epoch": epoch,
                "leader": self.leader(),
                "staleSeconds": self.stale(),
            },
            "safeMode": self.safe_mode(),
            "storeFault": self.store_fault(),
            "draining": self.draining(),
        }
