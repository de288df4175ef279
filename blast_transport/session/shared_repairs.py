"""Which repairs are worth light: segments that several receivers miss, gathered for about the time of a window."""

from __future__ import annotations

import math
from collections.abc import Collection

from blast_transport.session.peer import Peer

MOST_GATHER = 0.1
"""Seconds after which a repair that might be shared goes to one receiver after all: the light may be gone."""


class SharedRepairs:
    """Blocks of which somebody has asked for segments; `count` segments were repaired for several at once."""

    def __init__(self) -> None:
        self.count = 0
        self._asked: dict[int, float] = {}

    def note(self, block: int, now: float) -> None:
        """Somebody misses something of this block; others may, and will say so soon."""
        self._asked.setdefault(block, now)

    def waits(self, block: int, now: float) -> bool:
        """What is missing of this block may still turn out to be missing elsewhere."""
        return now < self._asked.get(block, -math.inf) + MOST_GATHER

    def take(self, peers: Collection[Peer], now: float, gather: float) -> tuple[int, int] | None:
        """(block, mask of segments) that several of `peers` miss, `gather` seconds after the first asked for it.

        They are not owed any more. None: there is nothing such yet.
        """
        while self._asked:
            block, asked = next(iter(self._asked.items()))
            if now < asked + gather:
                break
            del self._asked[block]
            if shared := _shared(peers, block):
                for peer in peers:
                    peer.owed.take(block, shared)
                self.count += shared.bit_count()
                return block, shared
        return None

    def clear(self) -> None:
        """There is no light any more."""
        self._asked.clear()


def _shared(peers: Collection[Peer], block: int) -> int:
    once = shared = 0
    for peer in peers:
        mask = peer.owed.blocks.get(block, 0)
        shared |= once & mask
        once |= mask
    return shared
