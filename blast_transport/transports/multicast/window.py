"""Congestion window of the sender: that of PGMCC (L. Rizzo, SIGCOMM 2000), which is that of TCP Reno.

One receiver, the representative, acknowledges the segments that have passed it. PGMCC is chosen before TFMCC (RFC
4654): both take feedback from one receiver, but TFMCC computes a rate from a loss rate that it has to measure over many
losses, and at the short round trips of a LAN it reacts later than the TCP flows beside it.

Two things differ from the paper. The window begins with slow start up to the first loss, or until a queue grows
(`slow_start.py`). The paper stops at six segments, for receivers on the Internet, and a LAN has a hundred times the
rate. Segments leave at the rate of a window in a round trip, not one for each acknowledgment, as acknowledgments come
for many segments at once. No sockets, no clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from blast_transport.transports.multicast.slow_start import SlowStart

INITIAL_SEGMENTS = 10.0
"""RFC 6928."""
_FEWEST_SEGMENTS = 2.0
"""RFC 5681 allows one; with two a lost segment shows by its successor."""
_DECREASE = 0.5
"""Of the window at a loss (RFC 5681)."""
_FASTER = 2.0
"""Segments leave that much faster than a window in a round trip: slow start doubles it in each. Beside TCP, whose
segments are not spaced, a slower sender loses more of its segments and gets less than its share."""
_ASSUMED_SECONDS = 0.01
"""Round trip before the first was measured."""
_MEMORY, _VARIATION_MEMORY = 1 / 8, 1 / 4
_SHORTEST_TIMEOUT = 0.2
"""Seconds; a receiver's disk may delay its report for longer than the network does."""
_LONGEST_TIMEOUT = 10.0
_SILENT_ROUND_TRIPS = 2
"""Round trips without acknowledgment after which one more segment may leave (RFC 8985, section 7.2)."""


@dataclass(slots=True)
class RoundTrip:
    """Estimate of the round trip in seconds, and of the time without acknowledgment after which all counts as lost.

    RFC 6298.
    """

    seconds: float = _ASSUMED_SECONDS
    variation: float = 0.0
    measured: bool = False
    backoff: int = 0

    def measure(self, seconds: float) -> None:
        """Record a measured round trip."""
        self.backoff = 0
        if not self.measured:
            self.seconds, self.variation, self.measured = seconds, seconds / 2, True
            return
        self.variation += _VARIATION_MEMORY * (abs(seconds - self.seconds) - self.variation)
        self.seconds += _MEMORY * (seconds - self.seconds)

    @property
    def timeout(self) -> float:
        """Return the seconds without acknowledgment after which everything in flight counts as lost."""
        seconds = max(_SHORTEST_TIMEOUT, self.seconds + 4 * self.variation)
        return min(seconds * 2.0**self.backoff, _LONGEST_TIMEOUT)


@dataclass(slots=True)
class CongestionWindow:
    """Window in segments. Positions count the segments in the order in which they left, from 0.

    `acknowledged`: the representative has passed that many. `round_trip`: to it and back.
    """

    segments: float = INITIAL_SEGMENTS
    threshold: float = math.inf
    acknowledged: int = 0
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    _slow_start: SlowStart = field(default_factory=SlowStart)
    # A loss among segments that left before this position was reacted to already.
    _recovered: int = 0
    _acknowledged_at: float | None = None
    # Segments beyond the window: if the last ones in flight are lost, these show it before the timeout.
    _probes: int = 0

    def room(self, sent: int) -> int:
        """Return the segments that may leave after `sent` have."""
        return math.floor(self.segments) + self._probes - (sent - self.acknowledged)

    def measure(self, seconds: float) -> None:
        """Record a round trip to the representative."""
        self.round_trip.measure(seconds)
        self._slow_start.measure(seconds)

    def acknowledge(self, position: int, sent: int, congested_at: int | None, now: float) -> None:
        """Handle a report of the representative: it has passed `position` of the `sent` segments.

        `congested_at`: position of the last segment that was lost or marked (RFC 3168) since its previous report, None
        if none was.
        """
        passed = position - self.acknowledged
        in_flight = sent - self.acknowledged
        self.acknowledged = max(position, self.acknowledged)
        self._acknowledged_at, self._probes = now, 0
        self._slow_start.acknowledge(position, sent)
        if congested_at is not None:
            if congested_at > self._recovered:
                self._decrease(sent)
        elif passed > 0 and 2 * in_flight >= self.segments:
            # A window that is not used shows nothing about the network (RFC 7661).
            self._increase(passed)

    def until_probe(self, now: float) -> float:
        """Return the seconds until another segment may leave although the representative is silent."""
        if self._acknowledged_at is None:
            return math.inf
        return max(0.0, self._acknowledged_at + self.round_trip.seconds * (_SILENT_ROUND_TRIPS << self._probes) - now)

    def probe(self, now: float) -> None:
        """Let another segment leave if that is due; each waits twice as long as the one before."""
        if self.until_probe(now) == 0.0:
            self._probes += 1

    def expire(self, sent: int, now: float) -> bool:
        """Return whether the representative has been silent for too long; all in flight then counts as lost."""
        if sent == self.acknowledged:
            self._acknowledged_at = now
            return False
        if self._acknowledged_at is None:
            self._acknowledged_at = now
        if now < self._acknowledged_at + self.round_trip.timeout:
            return False
        if not self.round_trip.backoff:
            # Further timeouts do not show a smaller capacity (RFC 5681, section 3.1).
            self.threshold = max(self.segments * _DECREASE, _FEWEST_SEGMENTS)
        self.segments, self._recovered = _FEWEST_SEGMENTS, sent
        self.acknowledged, self._acknowledged_at, self._probes = sent, now, 0
        self.round_trip.backoff += 1
        return True

    def follow(self) -> None:
        """Continue with another representative.

        Its latest position may be old: a window that is counted from there would stop the sender for a round trip.
        """
        self._slow_start.follow()

    def rate(self, segment_bits: float) -> float:
        """Return the rate in bits/s at which segments of `segment_bits` on the wire leave."""
        return _FASTER * self.segments * segment_bits / self.round_trip.seconds

    def _decrease(self, sent: int) -> None:
        self.segments = self.threshold = max(self.segments * _DECREASE, _FEWEST_SEGMENTS)
        self._recovered = sent

    def _increase(self, passed: int) -> None:
        if math.isinf(self.threshold):
            self.segments += passed * self._slow_start.growth
            if self._slow_start.over:
                self.threshold = self.segments
        elif self.segments < self.threshold:
            self.segments = min(self.segments + passed, self.threshold)
        else:
            self.segments += passed / self.segments
