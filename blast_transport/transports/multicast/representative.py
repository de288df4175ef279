"""Election of the representative: the receiver for which a TCP flow would be slowest (PGMCC, section 3.3).

The rate of TCP is proportional to 1 / (round trip x sqrt(loss rate)). The paper counts round trips in segments, which
includes the time that a receiver waits before it reports. The loss rate is that of RFC 5348, section 5: with the
paper's filter, which remembers 120 segments, the receiver with the latest loss represents the others, and the sender
reacts to the rare losses of all. No sockets, no clock.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from operator import mul
from typing import NamedTuple

_WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
"""Of the intervals between losses, the latest first (RFC 5348, section 5.4)."""
_MEMORY = 1 / 8
"""Weight of the latest round trip (RFC 6298)."""
_MIN_LOSS = 1e-9
"""Loss rate that stands for none, so that round trips decide where nothing is lost."""
_SLOWER = 0.75
"""Part of the representative's rate below which another receiver replaces it: without, two would alternate."""


@dataclass(slots=True)
class ReceiverPath:
    """Path to a receiver: its position, its lost and marked segments, its round trip in seconds.

    `in_flight`: segments that left in a round trip. `intervals`: segments from each loss event to the next, the latest
    first.
    """

    position: int = 0
    lost: int = 0
    marked: int = 0
    round_trip: float = 0.0
    in_flight: int = 1
    intervals: deque[float] = field(default_factory=lambda: deque(maxlen=len(_WEIGHTS)))
    _lost_at: int = 0
    # Mean of the intervals; their weighted sum with the one that has not ended in front, and the sum of those weights.
    _closed: float = 0.0
    _earlier: float = 0.0
    _weight: float = 1.0

    @property
    def loss(self) -> float:
        """Return the loss rate: events for each segment."""
        if not self.intervals:
            return 0.0
        # The interval that has not ended counts if it is long (RFC 5348, section 5.4).
        opened = (_WEIGHTS[0] * (self.position - self._lost_at) + self._earlier) / self._weight
        return 1 / max(opened, self._closed)

    def record(self, position: int, lost: int) -> None:
        """Record that `lost` segments before `position` were lost or marked since the last report."""
        passed, self.position = position - self.position, max(position, self.position)
        since = self.position - self._lost_at
        # The losses within a round trip are one event. Those of a report count as spread over it.
        if lost and (since >= self.in_flight or not self.intervals):
            events = min(lost, max(1, passed // self.in_flight))
            self.intervals.extendleft([max(1.0, since / events)] * min(events, len(_WEIGHTS)))
            self._lost_at = self.position
            ended, earlier = _WEIGHTS[: len(self.intervals)], _WEIGHTS[1 : len(self.intervals) + 1]
            self._closed = sum(map(mul, ended, self.intervals)) / sum(ended)
            self._earlier, self._weight = sum(map(mul, earlier, self.intervals)), _WEIGHTS[0] + sum(earlier)

    @property
    def relative_rate(self) -> float:
        """Return the rate of TCP to it, except for a constant."""
        return 1 / (self.round_trip * math.sqrt(max(self.loss, _MIN_LOSS)))


class Sight(NamedTuple):
    """State of a receiver: segments that have passed it, segments in flight to it, round trip in seconds."""

    position: int
    in_flight: int
    round_trip: float


class Election:
    """State of the receivers, and which represents them; None: none yet."""

    def __init__(self) -> None:
        self.representative: str | None = None
        self._paths: dict[str, ReceiverPath] = {}
        # Receivers that were silent, and the position up to which they were silent.
        self._silent: dict[str, int] = {}

    def position(self, name: str) -> int:
        """Return the segments that a receiver has passed."""
        return self._paths[name].position if name in self._paths else 0

    def report(self, name: str, sight: Sight, counts: tuple[int, int]) -> tuple[int, int]:
        """Record a report; `counts` are all lost and all marked segments. Return how many of them are new."""
        path, (lost, marked) = self._paths.setdefault(name, ReceiverPath(round_trip=sight.round_trip)), counts
        new = max(0, lost - path.lost), max(0, marked - path.marked)
        path.lost, path.marked, path.in_flight = path.lost + new[0], path.marked + new[1], max(1, sight.in_flight)
        if sight.position > path.position:
            path.round_trip += _MEMORY * (sight.round_trip - path.round_trip)
        path.record(sight.position, sum(new))
        return new

    def consider(self, name: str) -> bool:
        """Elect the receiver that has just reported if it is slower; return whether the representative is another one.

        Reports of other receivers are too old to be compared.
        """
        representative = self.representative
        if representative == name or self._paths[name].position <= self._silent.get(name, -1):
            return False
        if representative is not None and self._rate(name) >= _SLOWER * self._rate(representative):
            return False
        self._silent.pop(name, None)
        self.representative = name
        return True

    def exclude(self, name: str, sent: int) -> None:
        """Do without a receiver until it has passed more than the `sent` segments."""
        self._silent[name] = sent
        if self.representative == name:
            self.representative = None

    def _rate(self, name: str) -> float:
        return self._paths[name].relative_rate
