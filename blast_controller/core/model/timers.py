"""Deadlines of the core: a heap of moments and what is then to be looked at."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from blast_controller.core.model.identifiers import LinkId, SwitchId
from blast_controller.core.model.requests import RequestKey


@dataclass(frozen=True, slots=True)
class LeaseExpired:
    """A part's lease may be over."""

    request: RequestKey
    part: int


@dataclass(frozen=True, slots=True)
class PendingTimeoutExpired:
    """A client may have waited long enough."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class GracePeriodExpired:
    """A vanished client has not come back."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class RetentionExpired:
    """An ended request need not be remembered any longer."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class Retry:
    """A device step that failed is to be tried again."""

    reservation: int


@dataclass(frozen=True, slots=True)
class AuditDue:
    """Devices are to be read again and compared with what is wanted, if that is still the appointed time."""

    at: float


@dataclass(frozen=True, slots=True)
class QuotaReviewDue:
    """A tenant may be served again: an hour has passed since its last use of lit time."""


@dataclass(frozen=True, slots=True)
class LinkTimedOut:
    """Ports of new leaves should have their link by now."""

    reservation: int
    step: int


@dataclass(frozen=True, slots=True)
class FlapToleranceExpired:
    """The flap tolerance of a port that had lost its link has passed."""

    link: LinkId


@dataclass(frozen=True, slots=True)
class ProbeDue:
    """The probes with this serial number should have arrived by now, or are to be sent again."""

    serial: int


@dataclass(frozen=True, slots=True)
class ProbeClearRetryDue:
    """A switch failed to remove the circuits of a fiber check."""

    switch: SwitchId


@dataclass(frozen=True, slots=True)
class WarmTimeExpired:
    """The time until which a warm tree is kept for its group ends."""

    reservation: int
    at: float


@dataclass(frozen=True, slots=True)
class OptimizerTimedOut:
    """A decision has been postponed for long enough."""


Deadline = (
    LeaseExpired
    | PendingTimeoutExpired
    | GracePeriodExpired
    | RetentionExpired
    | Retry
    | AuditDue
    | QuotaReviewDue
    | LinkTimedOut
    | FlapToleranceExpired
    | ProbeDue
    | ProbeClearRetryDue
    | WarmTimeExpired
    | OptimizerTimedOut
)


_Entry = tuple[float, int, Deadline, bool]
"""(when, a number that makes the order whole, what, whether it was asked for by `keep`)"""


@dataclass(slots=True)
class Timers:
    """Deadlines are hints to check: each handler verifies whether its deadline still holds.

    A kept deadline has one entry at a time, however often it moves: its handler schedules it again if it moved on.
    Obsolete entries stay in the heap until they are due, or until they are half of all.
    """

    _heap: list[_Entry] = field(default_factory=list)
    _kept: dict[Deadline, float] = field(default_factory=dict)
    _others: int = 0
    _count: int = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, when: float, deadline: Deadline) -> None:
        """Look at `deadline` once the time is `when`."""
        self._others += 1
        self._push(when, deadline, kept=False)

    def keep(self, when: float, deadline: Deadline) -> None:
        """Look at `deadline` once the time is `when`, or at the earlier moment that is appointed already."""
        if self._kept.get(deadline, math.inf) > when:
            self._kept[deadline] = when
            self._push(when, deadline, kept=True)

    def drop(self, deadline: Deadline) -> None:
        """Cancel `deadline`."""
        self._kept.pop(deadline, None)
        self._forget_stale()

    def next(self) -> float | None:
        """Return the time of the earliest deadline, or None."""
        while self._heap and self._is_stale(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float, max_count: int) -> list[Deadline]:
        """Return at most `max_count` expired deadlines, earliest first; each is returned once."""
        found: list[Deadline] = []
        while len(found) < max_count and (when := self.next()) is not None and when <= now:
            _, _, deadline, kept = heapq.heappop(self._heap)
            if kept:
                del self._kept[deadline]
            else:
                self._others -= 1
            found.append(deadline)
        return found

    def _push(self, when: float, deadline: Deadline, kept: bool) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, deadline, kept))
        self._forget_stale()

    def _is_stale(self, entry: _Entry) -> bool:
        when, _, deadline, kept = entry
        return kept and self._kept.get(deadline) != when

    def _forget_stale(self) -> None:
        if len(self._heap) > 2 * (len(self._kept) + self._others) + 16:
            self._heap = [entry for entry in self._heap if not self._is_stale(entry)]
            heapq.heapify(self._heap)
