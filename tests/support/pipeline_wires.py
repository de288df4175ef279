"""Connections between simulated hosts: in order, with a rate, a latency and a limited buffer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from blast_transport.carriers.pipeline.protocol.messages import Message

if TYPE_CHECKING:
    from tests.support.pipeline_world import Host, World

PIECE = 4_000
LATENCY = 0.001
BUFFER = 40_000
Item = Message | tuple[int, bytes] | None
"""What travels: a message, (offset, data), or None for the end of the connection."""


class Way:
    """One direction of a connection: in order, with a rate, a latency and a limited buffer."""

    def __init__(self, world: World, writer: Host) -> None:
        self.items: deque[tuple[float, Item]] = deque()
        self.bytes = 0
        self.closed = False
        self._world = world
        self._writer = writer
        self._free = 0.0

    def put(self, item: Item, reader: Host) -> None:
        if self.closed:
            return
        size = len(item[1]) if isinstance(item, tuple) else 0
        self.bytes += size
        self._free = max(self._free, self._world.now) + size / self._world.rate
        self.closed = item is None
        self.items.append((self._free + LATENCY, item))
        self._world.wake(reader, self._free + LATENCY)

    def peek(self) -> Item | str:
        if not self.items or self.items[0][0] > self._world.now:
            return "nothing"
        return self.items[0][1]

    def take(self) -> None:
        _, item = self.items.popleft()
        if isinstance(item, tuple):
            self.bytes -= len(item[1])
            self._world.wake(self._writer, self._world.now)

    def next(self) -> float:
        """When the next item is there."""
        return self.items[0][0] if self.items else float("inf")


class Connection:
    """Between `caller` and `callee`."""

    def __init__(self, world: World, caller: Host, callee: Host) -> None:
        self.ends = (caller, callee)
        self.ways = {caller: Way(world, caller), callee: Way(world, callee)}

    def other(self, host: Host) -> Host:
        return self.ends[1] if host is self.ends[0] else self.ends[0]

    def put(self, writer: Host, item: Item) -> None:
        self.ways[writer].put(item, self.other(writer))

    def incoming(self, reader: Host) -> Way:
        return self.ways[self.other(reader)]

    def outgoing(self, writer: Host) -> Way:
        return self.ways[writer]
