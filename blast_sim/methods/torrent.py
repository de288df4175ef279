"""Spark's TorrentBroadcast: its block protocol, block by block.

The driver cuts the value into blocks of 4 MiB (`spark.broadcast.blockSize`). Every executor fetches all blocks in its
own random order, one at a time: it queries the driver for holders of the block, fetches it from a random one of them
(its own host's first; executors share none here), and registers as a holder at the driver. Compression, checksums and
the time of queries are not modeled: times are a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from blast_sim.methods.method import Done, Multicast, World

BLOCK = 4 << 20
"""Bytes."""

ON_THE_WIRE = 1514 / 1448
"""Bytes of Ethernet frames per byte of data: an MTU of 1500 with TCP timestamps. An uplink carries frames."""


class Torrent:
    """TorrentBroadcast; `fetched_from` counts the bytes that each server has sent, over all broadcasts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fetched_from: Counter[int] = Counter()

    def send(self, multicast: Multicast, done: Done) -> None:
        """Begin to send now: every executor fetches its first block."""
        broadcast = _Broadcast(self, multicast, done)
        for executor in multicast.receivers:
            broadcast.fetch_next(executor)


class _Broadcast:
    """One value on its way to all executors."""

    def __init__(self, torrent: Torrent, multicast: Multicast, done: Done) -> None:
        self._torrent, self._done = torrent, done
        self._sizes = [min(BLOCK, multicast.bytes - first) for first in range(0, multicast.bytes, BLOCK)]
        self._holders = [[multicast.sender] for _ in self._sizes]
        self._left = {executor: self._order() for executor in multicast.receivers}
        self._without = len(self._left)

    def _order(self) -> Iterator[int]:
        return iter(self._torrent.world.dice.sample(range(len(self._sizes)), len(self._sizes)))

    def fetch_next(self, executor: int) -> None:
        """Fetch the next block that this executor lacks, if any."""
        block = next(self._left[executor], None)
        if block is None:
            self._without -= 1
            if not self._without:
                self._done()
            return
        world, size = self._torrent.world, self._sizes[block]
        holder = world.dice.choice(self._holders[block])
        self._torrent.fetched_from[holder] += size
        world.simulation.start(
            world.network.unicast([holder], [executor]), 8.0 * size, lambda _: self._fetched(executor, block)
        )

    def _fetched(self, executor: int, block: int) -> None:
        self._holders[block].append(executor)
        # Blocks that arrive at this moment are known to all who ask for the next one.
        self._torrent.world.simulation.clock.at(
            self._torrent.world.simulation.clock.now, lambda: self.fetch_next(executor)
        )
