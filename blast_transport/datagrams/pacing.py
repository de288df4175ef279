"""When the next datagram may leave.

Two schedules must agree (a dual leaky bucket, ITU-T I.371). The average one holds the long run at a share of the
granted rate and remembers time lost to a busy machine; the peak one lets that time be made up at the granted rate
and no faster, in bursts so short that the smallest queue on the path holds them.
"""

from __future__ import annotations

import math

from blast_transport.base.errors import WrongInputError

SHARE = 0.995
"""Part of the granted rate that is used in the long run: clocks differ, and a queue must be able to drain."""

_BURST_SECONDS, _LONGEST_BURST_SECONDS = 0.001, 0.01
_QUEUE_SHARE = 1 / 2
"""Share of the smallest queue on the path that a burst may fill: it has drained while a receiver blocked the window."""

_MEMORY_SECONDS = 0.05
"""Time in which a late wake-up may be made up for."""


def check_rate(rate: float) -> None:
    """Raise WrongInputError unless the rate in bits/s is positive and finite."""
    if not 0 < rate < float("inf"):
        raise WrongInputError(f"the rate is {rate} bits/s; give a positive one")


class _Schedule:
    """A virtual clock that advances with every datagram and never falls more than `tolerance` seconds behind."""

    __slots__ = ("next", "rate", "tolerance")

    def __init__(self, rate: float, tolerance: float, now: float) -> None:
        self.rate = rate
        self.tolerance = tolerance
        self.next = now

    def sent(self, bits: int, now: float) -> None:
        self.next = max(self.next, now - self.tolerance) + bits / self.rate

    def allowance(self, now: float) -> float:
        """Return the bits that may have left at `now` before the next datagram; below 0: it has to wait."""
        return (now - max(self.next, now - self.tolerance)) * self.rate


def _tolerances(rate: float, datagram_bytes: int, queue_bytes: int) -> tuple[float, float]:
    """Return the seconds by which the average and the peak schedule may fall behind."""
    queued = min(queue_bytes * _QUEUE_SHARE * 8 / rate, _LONGEST_BURST_SECONDS)
    burst = max(_BURST_SECONDS, queued, datagram_bytes * 8 / rate)
    return max(_MEMORY_SECONDS, burst / SHARE), burst


class Pacer:
    """Spaces datagrams so that a path of `rate` bits/s is never overrun.

    `datagram_bytes` is the size on the wire of a full datagram. A burst is what comes after a late wake-up: never
    more than 1 ms worth of datagrams, or two where one alone takes longer; up to 10 ms where the smallest queue on the
    path, of `queue_bytes`, holds twice that. Raises WrongInputError for a rate that is not positive: there is no
    unpaced sender.
    """

    __slots__ = ("_average", "_path", "_peak")

    def __init__(self, rate: float, datagram_bytes: int, now: float, queue_bytes: int = 0) -> None:
        check_rate(rate)
        self._path = datagram_bytes, queue_bytes
        average, peak = _tolerances(rate, *self._path)
        self._average, self._peak = _Schedule(rate * SHARE, average, now), _Schedule(rate, peak, now)

    def change(self, rate: float, now: float) -> None:
        """Continue at another rate; datagrams that have left count as before. Raises as the constructor does."""
        check_rate(rate)
        for schedule, share, tolerance in zip(
            (self._average, self._peak), (SHARE, 1.0), _tolerances(rate, *self._path), strict=True
        ):
            ahead = max(0.0, schedule.next - now) * schedule.rate
            schedule.rate, schedule.tolerance = rate * share, tolerance
            schedule.next = now + ahead / schedule.rate if ahead else schedule.next

    def delay(self, now: float) -> float:
        """Return the seconds until the next datagram may leave; 0 if it may leave now."""
        return max(0.0, self._average.next - now, self._peak.next - now)

    def allowance(self, now: float) -> int:
        """Return the bytes on the wire after which another datagram may leave at `now`; below 0: none may."""
        return math.floor(min(self._average.allowance(now), self._peak.allowance(now)) / 8)

    @property
    def schedules(self) -> tuple[tuple[float, float, float], ...]:
        """Return both schedules, average and peak: bits/s, tolerance in seconds, time of the next datagram."""
        return tuple((schedule.rate, schedule.tolerance, schedule.next) for schedule in (self._average, self._peak))

    @property
    def due(self) -> tuple[float, float]:
        """Return when the next datagram may leave, by each schedule; compiled code updates these times."""
        return self._average.next, self._peak.next

    @due.setter
    def due(self, moments: tuple[float, float]) -> None:
        self._average.next, self._peak.next = moments

    def sent(self, wire_bytes: int, now: float) -> None:
        """Record that datagrams of this total size on the wire left at `now`."""
        self._average.sent(wire_bytes * 8, now)
        self._peak.sent(wire_bytes * 8, now)
