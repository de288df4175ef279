"""Congestion control of a sender: the segments that may be in flight, their rate, and the intervals of reports.

The receiver that is slowest to reach represents all; the window follows its reports. No sockets, no clock.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.transports.multicast.feedback import PathReport
from blast_transport.transports.multicast.representative import Election, Sight
from blast_transport.transports.multicast.window import CongestionWindow

_REPORTS_PER_WINDOW = 16
"""A window moves in as many steps."""
UNREACHED_SECONDS = 1.0
"""A receiver reports its first segment at once, and later ones every 0.2 s."""
_PAUSE_SECONDS = 0.2
"""Without segments for longer, a receiver's latest report does not show that it is reached no longer."""
_REPORT_SECONDS = 0.0005
"""Shortest time between two reports: each costs both ends as much as a block."""
_SHORTEST_TRIP = 1e-5
"""Seconds; a receiver may report a longer delay than it had."""
_MAX_TIMEOUTS = 4
"""Timeouts in a row in which no receiver passed a segment: each was preceded by segments to pass."""
_MAX_SPANS = 4096
"""Older ones concern receivers that are demoted by then."""


class _Span(NamedTuple):
    """Segments `first` to before `stop`, before which `position` segments had left; from `began` to `ended`."""

    first: int
    stop: int
    position: int
    began: float
    ended: float


class SentLog:
    """Log of segments that left for the first time; `sent` counts them."""

    def __init__(self) -> None:
        self.sent = 0
        self._spans: deque[_Span] = deque(maxlen=_MAX_SPANS)

    def record(self, first: int, stop: int, began: float, ended: float) -> None:
        """Record that these segments left, one after the other."""
        if first < stop:
            self._spans.append(_Span(first, stop, self.sent, began, ended))
            self.sent += stop - first

    def find(self, stop: int) -> tuple[int, float] | None:
        """Return how many segments had left when all before `stop` had, and when the last of them left.

        None if nothing is known.
        """
        if not self._spans:
            return None
        index = max(0, bisect_right(self._spans, stop - 1, key=lambda span: span.first) - 1)
        span = self._spans[index]
        count = max(0, min(stop, span.stop) - span.first)
        share = count / (span.stop - span.first)
        return span.position + count, span.began + share * (span.ended - span.began)


class CongestionControl:
    """State of the congestion control of one phase. `orders`: (receiver, segments between its reports) to send."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, int]] = []
        self._window, self._log, self._election = CongestionWindow(), SentLog(), Election()
        # Members, and since when segments leave for them; when each has last reported.
        self._members: dict[str, float] = {}
        self._reported: dict[str, float] = {}
        # The farthest reported segment, since when, and timeouts since then.
        self._farthest, self._farthest_at, self._timeouts = 0, -math.inf, 0
        self._ordered = 0
        # When a segment last left, and the first one after a pause.
        self._sent_at = self._resumed_at = -math.inf

    @property
    def representative(self) -> str | None:
        """Return the receiver that represents all, None before the first report."""
        return self._election.representative

    @property
    def segments(self) -> float:
        """Return the window in segments."""
        return self._window.segments

    @property
    def room(self) -> int:
        """Return the number of segments that may leave now."""
        return self._window.room(self._log.sent)

    @property
    def reaches_none(self) -> bool:
        """Return whether no receiver passes any segments, although they leave."""
        return self._timeouts >= _MAX_TIMEOUTS

    def rate(self, segment_bits: float) -> float:
        """Return the rate in bits/s at which segments of this many bits leave."""
        return self._window.rate(segment_bits)

    def sent(self, first: int, stop: int, began: float, ended: float) -> None:
        """Record that the segments from `first` to before `stop` left between these times."""
        self._log.record(first, stop, began, ended)
        if began > self._sent_at + _PAUSE_SECONDS:
            self._resumed_at = began
        self._sent_at = ended
        if math.inf in self._members.values():
            self._members = {name: min(since, ended) for name, since in self._members.items()}

    def admit(self, members: Collection[str]) -> None:
        """Let only these receivers represent the others; none: all."""
        self._members = {name: self._members.get(name, math.inf) for name in members}
        representative = self._election.representative
        if representative is not None and members and representative not in members:
            self._replace(representative)

    def unreached(self, now: float) -> list[str]:
        """Return the members that nothing reaches: `UNREACHED_SECONDS` after segments have left or reached others."""
        return [name for name, since in self._members.items() if self._is_unreached(name, since, now)]

    def _is_unreached(self, name: str, since: float, now: float) -> bool:
        if name not in self._reported:
            return now >= since + UNREACHED_SECONDS
        return self._farthest_at >= max(since, self._reported[name], self._resumed_at) + UNREACHED_SECONDS

    def receive(self, name: str, report: PathReport, now: float) -> None:
        """Follow a receiver's report. Raise RemoteProtocolError if it reports segments that did not leave."""
        found = self._log.find(report.stop)
        if found is None:
            raise RemoteProtocolError("a receiver has passed segments that were not sent")
        position, left_at = found
        self._reported[name] = now
        if report.stop > self._farthest:
            self._farthest, self._farthest_at, self._timeouts = report.stop, now, 0
        sight = Sight(position, self._log.sent - position, max(_SHORTEST_TRIP, now - left_at - report.delay / 1e6))
        congested_at = self._congested_at(name, sight, report)
        before = self._election.representative
        if (not self._members or name in self._members) and self._election.consider(name):
            self._represented_by(name, before)
        if name == self._election.representative:
            # A repeated segment may be the last that has passed, and the time since its first sending is no trip
            # (Karn's algorithm, RFC 6298).
            if position > self._window.acknowledged:
                self._window.measure(sight.round_trip)
            self._window.acknowledge(position, self._log.sent, congested_at, now)
            self._order(name)

    def wait(self, now: float) -> float:
        """Return the seconds until another segment may leave without a report."""
        return self._window.until_probe(now)

    def tick(self, now: float) -> bool:
        """Do without the representative if it is silent; return whether it was."""
        if not self._window.expire(self._log.sent, now):
            self._window.probe(now)
            return False
        self._timeouts += 1
        if self._election.representative is not None:
            self._replace(self._election.representative)
        return True

    def _replace(self, name: str) -> None:
        """Let the next receiver that reports represent all; order a report from each of the others."""
        self._election.exclude(name, self._log.sent)
        self.orders += [(other, 0) for other in self._members if other != name]

    def _represented_by(self, name: str, before: str | None) -> None:
        if before is not None:
            self.orders.append((before, 0))
        self._ordered = 0
        self._window.follow()

    def _congested_at(self, name: str, sight: Sight, report: PathReport) -> int | None:
        """Return the position of a segment that was lost or marked since the previous report, None without."""
        before = self._election.position(name)
        lost, marked = self._election.report(name, sight, (report.lost, report.marked))
        # Which segments were marked is not reported: as the first one of the report, the mark may belong to an event
        # that the sender has reacted to already.
        if marked:
            return before + 1
        found = self._log.find(report.lost_stop) if lost else None
        return None if found is None else found[0]

    def _order(self, name: str) -> None:
        """Order reports from the representative, if the window differs much from that of the last order."""
        window, seconds = self._window.segments, self._window.round_trip.seconds
        costly = min(window * _REPORT_SECONDS / seconds, window / 2)
        segments = max(1, int(max(window / _REPORTS_PER_WINDOW, costly)))
        if not self._ordered / 2 <= segments < self._ordered * 2:
            self._ordered = segments
            self.orders.append((name, segments))
