"""Which tree gets the next block: shares in proportion to the rates, and none that has to wait holds up the others.

Blocks are dealt one after the other, in a time of their own in which every tree that takes blocks keeps its rate. A
tree is due for a block when it has had its share of that time; of those that are due the one whose block would be
through first gets it. So the share of each differs from its rate's by less than a block (Tijdeman, The chairman
assignment problem, 1980).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_SLACK_SECONDS = 0.1
"""What was not dealt for so long, because the processor had other things to do, is made up for."""


class Dealer:
    """Trees of these `rates` in bits/s, from `now` on. No clock."""

    def __init__(self, rates: Sequence[float], now: float) -> None:
        self._rates = rates
        # When each is due again, and how far the dealing is, in its own time; where that stood still is `_origin`.
        self._due = [0.0] * len(rates)
        self._dealt = 0.0
        self._origin = now
        self._open: frozenset[int] = frozenset()

    def deal(self, size: int, open_: Collection[int], now: float) -> int | None:
        """The tree that gets the next block, of `size` bytes, of those that take one; None: it is too early."""
        self._admit(frozenset(open_))
        if not open_:
            return None
        at = max(self._dealt, min(self._due[tree] for tree in open_))
        if at > now - self._origin:
            return None
        self._dealt = at
        self._origin += max(0.0, now - self._origin - self._dealt - _SLACK_SECONDS)
        bits = size * 8
        due = [tree for tree in open_ if self._due[tree] <= self._dealt]
        chosen = min(due, key=lambda tree: (self._due[tree] + bits / self._rates[tree], tree))
        self._due[chosen] += bits / self._rates[chosen]
        self._dealt += bits / sum(self._rates[tree] for tree in open_)
        return chosen

    def wait(self, open_: Collection[int], now: float) -> float:
        """Seconds until the next block can be dealt to one of these; there is one."""
        due = max(self._dealt, min(self._due[tree] for tree in open_))
        return max(0.0, due - (now - self._origin))

    def _admit(self, open_: frozenset[int]) -> None:
        """Who takes blocks again has its share from now on, and nothing to make up for."""
        for tree in open_ - self._open:
            self._due[tree] = max(self._due[tree], self._dealt)
        self._open = open_
