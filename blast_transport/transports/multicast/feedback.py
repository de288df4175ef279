"""Feedback of a receiver: the segments that it counts as lost, when it reports them, and the form of its reports.

Reports are cumulative, because each replaces earlier ones. No sockets, no clock.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.blocks.block_map import Range

_REORDERED = 3
"""Later segments after which a missing one counts as lost (RFC 5681): a network with several paths reorders."""
_MAX_GAPS = 1024
"""Gaps that may still close; more are lost."""
_REPORT_SECONDS = 0.2
"""Interval of reports without an order."""
_LOSS_SECONDS = 0.05
"""Interval of reports of losses: every receiver may lose the same segment."""
_MAX_DELAY = (1 << 32) - 1

_REPORT = struct.Struct("<QQQQI")
_ORDER = struct.Struct("<I")


class PathReport(NamedTuple):
    """All segments before `stop` have passed or are lost.

    `lost` of them in total, the last before `lost_stop`; queues have `marked` that many (RFC 3168). The last of them
    arrived `delay` microseconds ago, which are not part of the round trip (as in RFC 3550, section 6.4.1).
    """

    stop: int
    lost: int
    lost_stop: int
    marked: int
    delay: int = 0


def encode_report(report: PathReport) -> bytes:
    """Encode a report."""
    return _REPORT.pack(*report)


def decode_report(body: bytes) -> PathReport:
    """Decode a report. Raise RemoteProtocolError."""
    try:
        return PathReport(*_REPORT.unpack(body))
    except struct.error:
        raise RemoteProtocolError(f"a report of the multicast transport has {len(body)} bytes") from None


def encode_order(segments: int) -> bytes:
    """Encode the order to report after every `segments` segments; 0: at losses and at intervals only."""
    return _ORDER.pack(segments)


def decode_order(body: bytes) -> int:
    """Decode an order. Raise RemoteProtocolError."""
    try:
        (segments,) = _ORDER.unpack(body)
    except struct.error:
        raise RemoteProtocolError(f"an order of the multicast transport has {len(body)} bytes") from None
    return int(segments)


class HoldsBlocks(Protocol):
    """Blocks that a receiver has."""

    def missing(self, start: int, stop: int) -> Iterable[Range]:
        """Return the runs (first, count) of blocks that are missing."""


class LossCounter:
    """Counts lost segments; `stop` is behind the last that has passed, `lost_stop` behind the last lost one.

    A jump over blocks that the receiver holds is no loss: the sender leaves out what all hold.
    """

    def __init__(self, first: int, held: HoldsBlocks, block_segments: int) -> None:
        self.stop, self.lost, self.lost_stop = first, 0, 0
        self._held, self._count = held, block_segments
        # (first, stop, the position at which it is lost), in order.
        self._gaps: deque[tuple[int, int, int]] = deque()

    def passed(self, runs: Iterable[Range]) -> None:
        """Record runs (first, stop) of segments in the order of their arrival."""
        for first, stop in runs:
            if first < self.stop:
                self._close(first, min(stop, self.stop))
            elif first > self.stop:
                self._open(self.stop, first)
            self.stop = max(self.stop, stop)
            while self._gaps and (self.stop >= self._gaps[0][2] or len(self._gaps) > _MAX_GAPS):
                begin, end, _ = self._gaps.popleft()
                self.lost, self.lost_stop = self.lost + end - begin, max(self.lost_stop, end)

    def _open(self, first: int, stop: int) -> None:
        begin, end = first // self._count, -(-stop // self._count)
        for block, number in self._held.missing(begin, end):
            gap = max(first, block * self._count), min(stop, (block + number) * self._count)
            self._gaps.append((*gap, stop + _REORDERED))

    def _close(self, first: int, stop: int) -> None:
        """Take late segments out of the gaps."""
        for _ in range(len(self._gaps)):
            begin, end, due = self._gaps.popleft()
            for part in ((begin, min(end, first)), (max(begin, stop), end)):
                if part[0] < part[1]:
                    self._gaps.append((*part, due))


class Reporting:
    """When a receiver reports: after the number of segments that the sender has ordered, at losses, and at times."""

    def __init__(self, losses: LossCounter, now: float) -> None:
        self._losses, self._every, self._first = losses, 0, losses.stop
        self._reported: PathReport | None = None
        self._at = self._arrived_at = now

    def passed(self, runs: Iterable[Range], now: float) -> None:
        """Record runs (first, stop) of segments in the order of their arrival, the last at `now`."""
        before = self._losses.stop
        self._losses.passed(runs)
        if self._losses.stop > before:
            self._arrived_at = now

    def order(self, segments: int) -> None:
        """PathReport at once, and after every `segments` segments from now on; 0: without an order."""
        self._every, self._reported = segments, None

    @property
    def until_due(self) -> int | None:
        """Return the segments until a report is due, None without an order."""
        if not self._every:
            return None
        reported = self._losses.stop if self._reported is None else self._reported.stop
        return max(1, reported + self._every - self._losses.stop)

    def take(self, now: float) -> PathReport | None:
        """Return the report that is due; the first one as soon as anything has come."""
        losses, last = self._losses, self._reported
        if losses.stop == self._first:
            return None
        if last is not None and not self._is_due(last, now):
            return None
        delay = min(round((now - self._arrived_at) * 1e6), _MAX_DELAY)
        self._reported, self._at = PathReport(losses.stop, losses.lost, losses.lost_stop, 0, delay), now
        return self._reported

    def _is_due(self, last: PathReport, now: float) -> bool:
        losses = self._losses
        passed = losses.stop - last.stop
        if self._every and passed >= self._every:
            return True
        if losses.lost > last.lost and (self._every or now >= self._at + _LOSS_SECONDS):
            return True
        return passed > 0 and now >= self._at + _REPORT_SECONDS
