"""Deadlines of the core: a heap of moments and what is then to be looked at."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from blast_controller.core.requests import RequestKey


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """A part's lease may be over."""

    request: RequestKey
    part: int


@dataclass(frozen=True, slots=True)
class PatienceEnd:
    """A client may have waited long enough."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class GraceEnd:
    """A vanished client has not come back."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class MemoryEnd:
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
class QuotaLook:
    """Somebody may have light again, because an hour has passed since they had much."""


@dataclass(frozen=True, slots=True)
class LinkDue:
    """Ports of new leaves should have their link by now."""

    reservation: int
    step: int


@dataclass(frozen=True, slots=True)
class LeafDown:
    """A port had lost its link a while ago: has it come back?"""

    datapath: int
    port: int


@dataclass(frozen=True, slots=True)
class ProbeDue:
    """The probes with this serial number should have arrived by now, or are to be sent again."""

    serial: int


@dataclass(frozen=True, slots=True)
class ClearAgain:
    """A switch would not take away the circuits of a fibre check."""

    switch: str


@dataclass(frozen=True, slots=True)
class Cool:
    """A tree was to be kept until this moment for whoever asks for its group again."""

    reservation: int
    at: float


@dataclass(frozen=True, slots=True)
class OptimiserLate:
    """A decision has been postponed for long enough."""


Deadline = (
    LeaseEnd
    | PatienceEnd
    | GraceEnd
    | MemoryEnd
    | Retry
    | AuditDue
    | QuotaLook
    | LinkDue
    | LeafDown
    | ProbeDue
    | ClearAgain
    | Cool
    | OptimiserLate
)


@dataclass(slots=True)
class Timers:
    """Deadlines are only hints to look: whoever handles one checks whether it still holds."""

    _heap: list[tuple[float, int, Deadline]] = field(default_factory=list)
    _count: int = 0

    def add(self, when: float, deadline: Deadline) -> None:
        """Look at `deadline` once the time is `when`."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, deadline))

    def next(self) -> float | None:
        """When the earliest deadline is."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[Deadline]:
        """The deadlines that are over, earliest first; each is handed out once."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]
