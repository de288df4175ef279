"""The sender's host of a phase along trees: deals the blocks to them, in order, each when a tree is due."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

from blast_transport.base.errors import ForgottenError, SourceChangedError
from blast_transport.blocks.block_map import BlockMap
from blast_transport.links.dialling import Dialer, dial
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.transports.trees.distribution import BlockDistributor
from blast_transport.transports.trees.edge import Edge
from blast_transport.transports.trees.events import BlocksDistributed, Event, TreesDrained
from blast_transport.transports.trees.host import TreeHost
from blast_transport.transports.trees.parcel import BufferSpace, Parcel
from blast_transport.transports.trees.plan import TreesPhase

_MAX_DEALT = 64
"""Blocks per step: children must get heartbeats."""
_WINDOW_SECONDS, _WINDOW_BLOCKS, _MAX_WINDOW = 0.3, 4, 32 << 20
"""Blocks in flight in a tree: its rate for this time, one for each host on the longest path, and a margin, up to a
maximum. They are sent again when the phase changes."""
_BACKLOG_SECONDS, _BACKLOG_BLOCKS, _MAX_BACKLOG = 0.05, 2, 4 << 20
"""Data that waits here for a tree's connections."""
_DEALT_SECONDS = 0.05
_IDLE_SECONDS = 0.2
_MAX_STILL = 3.0
"""Maximum seconds without progress of trees that were left: their missing blocks are repaired at the end."""


class _Trunk:
    """Tree at the sender: `edges` to its children, `dealt`: number of its blocks."""

    def __init__(self, edges: list[Edge], window: int, backlog: int) -> None:
        self.edges, self.window, self.backlog = edges, window, backlog
        self.dealt = 0

    @property
    def open(self) -> bool:
        """Return whether the tree accepts another block."""
        if not all(edge.settled for edge in self.edges):
            return False
        live = [edge for edge in self.edges if edge.live]
        return bool(live) and all(
            self.dealt - edge.taken < self.window and edge.backlog < self.backlog for edge in live
        )

    @property
    def dead(self) -> bool:
        """Return whether no child can be reached."""
        return not any(edge.live for edge in self.edges)


class Root(TreeHost):
    """Sender of one phase. `held`: blocks that need not be sent. Call `wake` when a stream has more data."""

    def __init__(
        self,
        phase: TreesPhase,
        reader: BlockReader,
        held: BlockMap,
        events: Callable[[Event], None],
        connect: Dialer = dial,
    ) -> None:
        super().__init__(phase, events, connect)
        self._reader, self._held = reader, held
        descriptor = reader.source.descriptor
        # The session may close its own descriptor before this thread has ended.
        self._descriptor = None if descriptor is None else os.dup(descriptor)
        self._size = reader.layout.block_size
        self._trunks = [self._trunk(number) for number in range(len(phase.trees))]
        self._dealer = BlockDistributor([tree.rate for tree in phase.trees], time.monotonic())
        self._room = BufferSpace(0)
        self._next = self._reported = phase.first
        self._reported_at = 0.0
        self._left = False
        # Number of delivered blocks, and seconds since its last change.
        self._through, self._still = 0, 0.0
        self._dealing = threading.Lock()

    def wake(self) -> None:
        """Notify it of more data or the end of the stream; from any thread."""
        self._waker.wake()

    def leave(self) -> int:
        """Stop dealing; return the block before which all were dealt. From any thread."""
        with self._dealing:
            self._left = True
            stop = self._next
        self._waker.wake()
        return stop

    def _trunk(self, number: int) -> _Trunk:
        tree = self.phase.trees[number]
        min_blocks = tree.height() + _WINDOW_BLOCKS
        window = min(
            min_blocks + int(tree.rate / 8 * _WINDOW_SECONDS / self._size), max(min_blocks, _MAX_WINDOW // self._size)
        )
        backlog = min(max(_BACKLOG_BLOCKS * self._size, int(tree.rate / 8 * _BACKLOG_SECONDS)), _MAX_BACKLOG)
        return _Trunk(self._of_tree[number], window, backlog)

    @property
    def _whole(self) -> bool:
        """Return whether all blocks are distributed."""
        return self._left or self._reader.last(self._next)

    def _load(self, number: int) -> Parcel | None:
        try:
            return Parcel(number, self._read(number), 1, self._room)
        except ForgottenError:
            return None

    def _watch(self, poll: select.poll, now: float) -> float:
        if self._whole or not self._reader.ready(self._next):
            return _IDLE_SECONDS
        open_ = [number for number, trunk in enumerate(self._trunks) if trunk.open]
        return min(_IDLE_SECONDS, self._dealer.wait(open_, now)) if open_ else _IDLE_SECONDS

    def _work(self, ready: dict[int, int], now: float) -> None:
        with self._dealing:
            self._deal(now)
            whole = self._whole
        if whole:
            for edge in self._edges.values():
                edge.end()
        if self._next > self._reported and (whole or now >= self._reported_at + _DEALT_SECONDS):
            self._reported, self._reported_at = self._next, now
            self._events(BlocksDistributed(self._next))
        if self._left and self._is_stalled:
            self._end("blocks in flight are not acknowledged")
        elif all(trunk.dead for trunk in self._trunks):
            self._end("no tree reaches a receiver")
        elif whole and all(edge.through for edge in self._edges.values()):
            self._events(TreesDrained())
            self._end("")

    @property
    def _is_stalled(self) -> bool:
        """Return whether no block was delivered for long, so that waiting is futile."""
        through = sum(edge.taken for edge in self._edges.values())
        self._still = self._still + self._passed if through == self._through else 0.0
        self._through = through
        return self._still >= _MAX_STILL

    def _deal(self, now: float) -> None:
        for _ in range(_MAX_DEALT):
            self._next = self._held.first_missing(self._next)
            if self._whole or not self._reader.ready(self._next):
                return
            open_ = [number for number, trunk in enumerate(self._trunks) if trunk.open]
            if (tree := self._dealer.deal(self._size, open_, now)) is None:
                return
            self._give(self._trunks[tree], self._next)
            self._next += 1

    def _give(self, trunk: _Trunk, number: int) -> None:
        trunk.dealt += 1
        if all(edge.holds(number) for edge in trunk.edges):
            for edge in trunk.edges:
                edge.name(number)
            return
        try:
            parcel = Parcel(number, self._read(number), len(trunk.edges), self._room)
        except ForgottenError:
            # In a stream, a host that lacks the block is too late for it.
            for edge in trunk.edges:
                edge.leave_out()
            return
        for edge in trunk.edges:
            edge.push(parcel)

    def _read(self, number: int) -> bytearray:
        layout, source = self._reader.layout, self._reader.source
        begin, size = layout.offset(number), source.size
        data = bytearray(self._size if size is None else min(self._size, size - begin))
        if self._descriptor is None:
            count = source.read(begin, memoryview(data))
        else:
            count = os.preadv(self._descriptor, [data], begin)
        if count < len(data):
            raise SourceChangedError(f"the file ends at byte {begin + count}: it became shorter while it was read")
        return data

    def _give_back(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._trunks.clear()
