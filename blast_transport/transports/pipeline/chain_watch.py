"""Detection of a link of a chain that passes no data, from each receiver's reports to the sender. No clock.

A node that accepts data, forwards none and sends heartbeats seems healthy to both neighbors: one sees its data
accepted, the other waits for data as any node may. Only the sender gets reports from all. It cannot know which end of
such a link is at fault, because each end may report anything: both leave the chain, and the sender serves them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_WINDOW_SECONDS = 2.0
"""Longer than the nodes themselves need to exclude a dead or slow neighbor, which costs the chain one node only."""
_STEP_SECONDS = 0.5
_LONGEST_PAUSE = 1.0
"""Between two calls: if the sender itself was stopped, receivers may have reported what it has not read."""
_MAX_BACKLOG = 32 << 20
"""Bytes by which a node may be behind its predecessor."""
_MIN_SHARE = 1 / 16
"""Of what lies before a node: one that takes less takes nothing, or is given nothing."""


class ChainPosition(NamedTuple):
    """All bytes before `position` are at the receiver `name`."""

    name: str
    position: int


class ChainWatch:
    """Watch of one phase."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, dict[str, int]]] = deque()
        self._names: list[str] = []
        self._called = 0.0

    def stuck(self, chain: Sequence[ChainPosition], now: float) -> tuple[str, str] | None:
        """Return the two ends of the link over which nothing passes, None if there is none.

        Parameters
        ----------
        chain : sequence of Node
            The sender and the nodes that are not lost, in the order of the chain.
        now : float
            Seconds of any clock that only goes forward.
        """
        names = [node.name for node in chain]
        if names != self._names or now > self._called + _LONGEST_PAUSE:
            self._steps.clear()
        self._names, self._called = names, now
        if not self._steps or now >= self._steps[-1][0] + _STEP_SECONDS:
            self._steps.append((now, dict(chain)))
        if now < self._steps[0][0] + _WINDOW_SECONDS:
            return None
        _, before = self._steps.popleft()
        # Of several, the last: the nodes before it wait because it does.
        for place, (giver, taker) in reversed(list(enumerate(pairwise(chain)))):
            began = before[taker.name]
            backlog = min(giver.position - began, _MAX_BACKLOG)
            # All data of a file lies before the first node, whose link from the sender may be slow like any other.
            enough = _MIN_SHARE * backlog if place else min(1, backlog)
            if taker.position - began < enough:
                return giver.name, taker.name
        return None
