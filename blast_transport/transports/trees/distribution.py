"""Distribution of blocks to the trees in proportion to their rates; a tree that waits does not delay the others.

Blocks are distributed in a virtual time in which every tree that accepts blocks keeps its rate. A tree is due for a
block when it has had its share of that time; the due tree that would complete the block first gets it. So each share
differs from that of the rate by less than a block (Tijdeman, The chairman assignment problem, 1980).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_SLACK_SECONDS = 0.1
"""Time for which the distribution may catch up after the process did not run."""


class BlockDistributor:
    """Trees of these `rates` in bits/s, from `now` on. No clock."""

    def __init__(self, rates: Sequence[float], now: float) -> None:
        self._rates = rates
        # When each is due again, and how far the dealing is, in its own time; where that stood still is `_origin`.
        self._due = [0.0] * len(rates)
        self._dealt = 0.0
        self._origin = now
        self._open: frozenset[int] = frozenset()

    def deal(self, size: int, open_: Collection[int], now: float) -> int | None:
        """Return the tree that gets the next block, of `size` bytes, of those in `open_`; None: it is too early."""
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
        """Return the seconds until one of these trees can get the next block."""
        due = max(self._dealt, min(self._due[tree] for tree in open_))
        return max(0.0, due - (now - self._origin))

    def _admit(self, open_: frozenset[int]) -> None:
        """Let trees that accept blocks again get their share from now on, without catching up."""
        for tree in open_ - self._open:
            self._due[tree] = max(self._due[tree], self._dealt)
        self._open = open_
