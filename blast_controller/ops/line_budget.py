"""Rate limit of log lines by kind and party: pure, on any steady clock.

Each (kind, party) has a bucket of `BURST` lines that fills again at `PER_SECOND`; suppressed lines are counted and
reported later. Peers choose the parties, so only the latest `MAX_PARTIES` have separate buckets (a new one replaces the
least recently used), and each kind has a bucket for all its parties together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

BURST = 500.0
PER_SECOND = 20.0
ALL_PARTIES = 5.0
"""The limit of a kind as a multiple of the limit of one of its parties."""
MAX_PARTIES = 1024
REPORT_EVERY = 10.0
"""Seconds between two reports of the lines that a continuing kind dropped."""

Source = tuple[str, str]
"""(kind, party); the party is empty for the bucket of a kind as a whole."""


@dataclass(slots=True)
class _Bucket:
    lines: float
    at: float

    def take(self, now: float, size: float, rate: float, cost: float) -> bool:
        self.lines = min(size, self.lines + max(0.0, now - self.at) * rate)
        self.at = now
        if self.lines < cost:
            return False
        self.lines -= cost
        return True


@dataclass(slots=True)
class LineBudget:
    """Counts lines as they come."""

    _buckets: OrderedDict[Source, _Bucket] = field(default_factory=OrderedDict)
    _left_out: dict[Source, tuple[float, int]] = field(default_factory=dict)
    """Since when, and how many lines."""

    def allows(self, kind: str, party: str, now: float, cost: float = 1.0) -> bool:
        """Return true if a line, or one as long as `cost` lines, may be written now; otherwise count it."""
        sources = [((kind, party), 1.0)] if party else []
        for source, share in [*sources, ((kind, ""), ALL_PARTIES if party else 1.0)]:
            bucket = self._bucket(source, BURST * share, now)
            if not bucket.take(now, BURST * share, PER_SECOND * share, cost):
                self._count(source, now)
                return False
        return True

    def _count(self, source: Source, now: float) -> None:
        if source not in self._left_out and len(self._left_out) >= MAX_PARTIES:
            source = (source[0], "")
        since, count = self._left_out.get(source, (now, 0))
        self._left_out[source] = (since, count + 1)

    def take_due(self, now: float, all_of_it: bool = False) -> Iterator[tuple[Source, int]]:
        """Yield the sources whose suppressed lines are due for a report, with their number."""
        for source, (since, count) in list(self._left_out.items()):
            if all_of_it or now - since >= REPORT_EVERY:
                del self._left_out[source]
                yield source, count

    def _bucket(self, source: Source, size: float, now: float) -> _Bucket:
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets[source] = _Bucket(size, now)
            if len(self._buckets) > MAX_PARTIES:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(source)
        return bucket
