"""Rate of a successor: compared with the minimum of a phase, and with the rate of arriving data."""

from __future__ import annotations

from typing import NamedTuple

MIN_SHARE = 0.5
"""Share of the arriving data: a successor that accepts less, by its own fault, is excluded."""

MIN_LINK_SHARE = 0.125
"""Of what lies before a successor that waits for it: the link to one that takes less is slow."""
MAX_BACKLOG = 32 << 20
"""Bytes by which a successor may be behind: the distance that a node keeps."""


class PaceVerdict(NamedTuple):
    """Verdict on a successor that is no longer served; `ours`: this node's link is slow, with any successor."""

    reason: str
    ours: bool = False


def is_far_behind(since: float, done: float, now: float, min_seconds: float) -> bool:
    """Return whether the one busy since `since` takes twice as long as the one `done`, and `min_seconds` longer."""
    return now >= max(since, done) + max(min_seconds, done - since)


class PaceSample(NamedTuple):
    """Observation at one time: bytes that have arrived, were given to the successor, and were accepted by it."""

    now: float
    come: int
    given: int
    taken: int


class SuccessorPace:
    """Pace of one successor after the other. `slowest` in bytes/s, 0 for none; `seconds`: time of the measurement.

    Only one successor is ever found slow by comparison, and none that waits for data itself: the link to it is slow
    then. Of two slow links in turn the second is this node's own. `judges_links` is False where a slow link is no
    reason: at a source, which no other node can replace, and behind a node that left for its slow link, where all links
    may be slow.
    """

    def __init__(self, slowest: float, seconds: float, judges_links: bool = True) -> None:
        self.judges_links = judges_links
        self._slowest = slowest
        self._seconds = seconds
        self._compares = True
        self._slow_links = 0
        self._since = self._compared_since = self._link_since = PaceSample(0.0, 0, 0, 0)
        self._starved = False
        self._given = 0

    def restart(self, sight: PaceSample) -> None:
        """Restart the measurement."""
        self._since = self._compared_since = self._link_since = sight
        self._given = sight.given

    def lags(self, come: int, taken: int) -> bool:
        """Return whether the comparison will find it slow, at its present rate: no node should wait for it."""
        since = self._compared_since
        return self._compares and not self._starved and taken - since.taken < MIN_SHARE * (come - since.come)

    def convict(self) -> bool:
        """Return whether a successor that reports a slow store is found slow: only one is, as by comparison."""
        compares, self._compares = self._compares, False
        return compares

    def see(self, sight: PaceSample, held_up: bool, starved: bool = False) -> PaceVerdict | None:
        """Return the reason if the successor has been too slow all the time although data lay before it.

        `held_up`: it waits for another node. `starved`: it waits for data, which does not arrive faster.
        """
        caught_up, self._given = sight.taken >= self._given, sight.given
        self._starved = starved
        if held_up or not starved or sight.given >= sight.come:
            # The link carries nothing if the successor does not read, or if all data has been sent.
            self._link_since = sight
        if starved:
            self._compared_since = sight
        if caught_up or held_up:
            self._since = self._compared_since = sight
            return self._slow_link(sight)
        return self._below_minimum(sight) or self._behind(sight) or self._slow_link(sight)

    def _slow_link(self, sight: PaceSample) -> PaceVerdict | None:
        since, seconds = self._link_since, sight.now - self._link_since.now
        if seconds < self._seconds or not self.judges_links:
            return None
        self._link_since, taken = sight, sight.taken - since.taken
        lay = min(sight.come - since.taken, MAX_BACKLOG)
        if taken >= MIN_LINK_SHARE * lay:
            return None
        self._slow_links += 1
        rate = f"{taken / seconds:.0f} bytes/s, and {lay} bytes lay there"
        if self._slow_links == 1:
            return PaceVerdict(f"excluded: the link to it carries {rate}")
        self.judges_links = False
        return PaceVerdict(f"its outgoing link carries {rate}", ours=True)

    def _below_minimum(self, sight: PaceSample) -> PaceVerdict | None:
        since, seconds = self._since, sight.now - self._since.now
        if seconds < self._seconds:
            return None
        self._since, taken = sight, sight.taken - since.taken
        if taken >= self._slowest * seconds:
            return None
        return PaceVerdict(f"excluded: {taken / seconds:.0f} bytes/s where {self._slowest:.0f} are the least")

    def _behind(self, sight: PaceSample) -> PaceVerdict | None:
        since, seconds = self._compared_since, sight.now - self._compared_since.now
        if seconds < self._seconds:
            return None
        lags, self._compared_since = self.lags(sight.come, sight.taken), sight
        if not lags:
            return None
        self._compares = False
        taken, come = sight.taken - since.taken, sight.come - since.come
        return PaceVerdict(f"excluded: {taken / seconds:.0f} bytes/s where {come / seconds:.0f} came")
