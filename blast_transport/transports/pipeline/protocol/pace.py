"""How fast a successor takes data: against the least that a phase allows, and against how fast data comes to us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MIN_SHARE = 0.5
"""Of what comes to us: a successor that takes less, by its own doing, holds up more than it is worth."""

MIN_LINK_SHARE = 0.125
"""Of what lies before a successor that waits for it: the link to one that takes less is slow."""
MAX_BACKLOG = 32 << 20
"""Bytes that count as lying before a successor: what a node runs ahead."""


class Verdict(NamedTuple):
    """Why a successor is not served any more; `ours`: the link from us is slow, whoever the successor is."""

    reason: str
    ours: bool = False


def is_far_behind(since: float, done: float, now: float, patience: float) -> bool:
    """Whether who is at it `since` then takes twice as long as who was `done`, and for `patience` seconds longer."""
    return now >= max(since, done) + max(patience, done - since)


@dataclass(frozen=True, slots=True)
class Sight:
    """At one moment: what has come to us, what of it was given to the successor, and what that has taken, in bytes."""

    now: float
    come: int
    given: int
    taken: int


class Pace:
    """Measures one successor after the other. `slowest` in bytes/s, 0 for none; `seconds`: over which it is measured.

    By comparison only one is ever found slow, and none that waits for data itself: the link between us is slow then.
    Of two slow links in turn the second is ours. `judges_links` is False where a link is no reason: at a source, which
    has no other node to be replaced by, and behind a node that left for its slow link, where all links may be slow.
    """

    def __init__(self, slowest: float, seconds: float, judges_links: bool = True) -> None:
        self.judges_links = judges_links
        self._slowest = slowest
        self._seconds = seconds
        self._compares = True
        self._slow_links = 0
        self._since = self._compared_since = self._link_since = Sight(0.0, 0, 0, 0)
        self._starved = False
        self._given = 0

    def anew(self, sight: Sight) -> None:
        """Measure from here on."""
        self._since = self._compared_since = self._link_since = sight
        self._given = sight.given

    def lags(self, come: int, taken: int) -> bool:
        """As it looks now, it will be found slow by comparison: nobody should wait for it."""
        since = self._compared_since
        return self._compares and not self._starved and taken - since.taken < MIN_SHARE * (come - since.come)

    def convict(self) -> bool:
        """Whether a successor is found slow that says so of its store: only one is, as by comparison."""
        compares, self._compares = self._compares, False
        return compares

    def see(self, sight: Sight, held_up: bool, starved: bool = False) -> Verdict | None:
        """Return why the successor is too slow, if it has been so all the time although data lay before it.

        `held_up`: what it waits for is not its doing. `starved`: it waits for data, which does not come faster.
        """
        caught_up, self._given = sight.taken >= self._given, sight.given
        self._starved = starved
        if held_up or not starved or sight.given >= sight.come:
            # The link carries nothing where the successor does not read, or where all has been handed over.
            self._link_since = sight
        if starved:
            self._compared_since = sight
        if caught_up or held_up:
            self._since = self._compared_since = sight
            return self._slow_link(sight)
        return self._below_least(sight) or self._behind(sight) or self._slow_link(sight)

    def _slow_link(self, sight: Sight) -> Verdict | None:
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
            return Verdict(f"excluded: the link to it carries {rate}")
        self.judges_links = False
        return Verdict(f"its outgoing link carries {rate}", ours=True)

    def _below_least(self, sight: Sight) -> Verdict | None:
        since, seconds = self._since, sight.now - self._since.now
        if seconds < self._seconds:
            return None
        self._since, taken = sight, sight.taken - since.taken
        if taken >= self._slowest * seconds:
            return None
        return Verdict(f"excluded: {taken / seconds:.0f} bytes/s where {self._slowest:.0f} are the least")

    def _behind(self, sight: Sight) -> Verdict | None:
        since, seconds = self._compared_since, sight.now - self._compared_since.now
        if seconds < self._seconds:
            return None
        lags, self._compared_since = self.lags(sight.come, sight.taken), sight
        if not lags:
            return None
        self._compares = False
        taken, come = sight.taken - since.taken, sight.come - since.come
        return Verdict(f"excluded: {taken / seconds:.0f} bytes/s where {come / seconds:.0f} came")
