"""A receiving host of a phase along trees: takes from its parents into the store, and passes on to its children."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.blocks.block_map import Range, runs_of
from blast_transport.links.dialling import Dialer, dial
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.eager_writer import EagerWriter
from blast_transport.store.blocks.store_writer import StoreWriter
from blast_transport.transports.trees.events import Event, Settled
from blast_transport.transports.trees.host import TreeHost
from blast_transport.transports.trees.inlet import Inlet
from blast_transport.transports.trees.parcel import BufferSpace, Parcel
from blast_transport.transports.trees.plan import NOWHERE, TreesPhase
from blast_transport.transports.trees.protocol.fields import HostReport
from blast_transport.transports.trees.protocol.messages import (
    MAX_RANGES,
    MAX_STREAMS,
    BlockHeld,
    Message,
    Open,
    TreeBlock,
    TreeDecoder,
)
from blast_transport.transports.trees.stream import EdgeStream

_MEMORY_BYTES = 64 << 20
"""Of blocks that are under way here, in all trees together."""
_FEWEST_BLOCKS = 4
"""Of each tree, however many there are."""
_STORE_BYTES = 8 << 20
_BLOCKS_AT_ONCE = 16
"""In one write: about what a processor's cache holds."""
_STEP_SECONDS = 0.015
"""Delay of forwarding received data, and of heartbeats."""
_SETTLED_SECONDS = 0.1
"""Interval of reports to the session, which sends them to the sender."""


class _Batch:
    """Blocks that are stored together, each with its tree; the writer sets `written`."""

    def __init__(self, parcels: list[tuple[int, Parcel]]) -> None:
        self.parcels = parcels
        self.written = False

    def __len__(self) -> int:
        return sum(len(parcel.data) for _, parcel in self.parcels)


class _Limb:
    """One tree at this host: inlet and children. `stored`: entries that are done here."""

    def __init__(self, inlet: Inlet, room: BufferSpace) -> None:
        self.inlet, self.room = inlet, room
        self.stored = 0
        # Blocks that arrived too early for a target that accepts them in order.
        self.early: deque[Parcel] = deque()


class TreeNode(TreeHost):
    """Host of one phase that fills `store`. Its session calls `accept` with connecting hosts."""

    def __init__(
        self, phase: TreesPhase, store: BlockStore, events: Callable[[Event], None], connect: Dialer = dial
    ) -> None:
        super().__init__(phase, events, connect)
        self._store = store
        max_bytes = max(_MEMORY_BYTES // max(1, len(phase.trees)), _FEWEST_BLOCKS * store.layout.block_size)
        self._limbs = [self._limb(number, max_bytes) for number in range(len(phase.trees))]
        # Blocks read from the store, for children that lack them.
        self._loaded = BufferSpace(_MEMORY_BYTES)
        # Connections that have joined without naming a stream.
        self._guests: list[tuple[EdgeStream, str, float]] = []
        self._in_order = store.target.in_order
        writer = StoreWriter[_Batch] if self._in_order else EagerWriter[_Batch]
        self._writer: StoreWriter[_Batch] | EagerWriter[_Batch] = writer(self._put, self._waker.wake, _STORE_BYTES)
        self._gathered: list[tuple[int, Parcel]] = []
        self._writing: deque[_Batch] = deque()
        self._steps = 0
        self._unreported = False
        self._settled_at = 0.0

    def accept(self, sock: socket.socket, name: str) -> None:
        """Take over the socket of the host `name`, which has sent Join. May be called from any thread."""
        self._waker.post(lambda: self._joined(sock, name))

    def _limb(self, number: int, max_bytes: int) -> _Limb:
        limb = _Limb(Inlet(lambda message: self._take(number, message), self.phase.timings), BufferSpace(max_bytes))
        if self.phase.trees[number].parent(self.phase.place) == NOWHERE:
            limb.inlet.total = 0
        return limb

    # ---------------------------------------------------------------------------------------------- who comes

    def _joined(self, sock: socket.socket, name: str) -> None:
        max_bytes = MAX_STREAMS * len(self.phase.trees)
        if self._ended is not None or len(self._guests) >= max_bytes:
            sock.close()
            return
        self._guests.append((EdgeStream(sock, TreeDecoder(self._check)), name, time.monotonic()))

    def _check(self, number: int, size: int) -> None:
        layout = self._store.layout
        max_bytes = layout.length(number) if number < layout.blocks else 0
        if number < self.phase.first or not (size == max_bytes or (not layout.known and 0 < size < max_bytes)):
            raise RemoteProtocolError(f"block {number} of {size} bytes does not exist")

    def _meet(self, ready: dict[int, int], now: float) -> None:
        """Read from joined connections which stream each is."""
        waiting = []
        for stream, name, since in self._guests:
            try:
                messages = stream.receive() if ready.get(stream.socket.fileno(), 0) or stream.pending else []
                if messages:
                    self._admit(stream, name, messages[0], now).receive_all(messages[1:])
                elif now >= since + self.phase.timings.answer:
                    raise RemoteProtocolError("sent no message in time")
                else:
                    waiting.append((stream, name, since))
            except RemoteError:
                stream.close()
        self._guests = waiting

    def _admit(self, stream: EdgeStream, name: str, message: Message, now: float) -> Inlet:
        phase = self.phase
        if not isinstance(message, Open) or message.tree >= len(phase.trees):
            raise RemoteProtocolError("expected an Open of an existing tree")
        parent = phase.trees[message.tree].parent(phase.place)
        if parent == NOWHERE or phase.name(parent) != name:
            raise RemoteProtocolError(f"{name!r} is not the parent of this host in tree {message.tree}")
        inlet = self._limbs[message.tree].inlet
        inlet.accept(stream, message.stream, self._held(message.tree), now)
        return inlet

    def _held(self, tree: int) -> tuple[Range, ...]:
        """Return the blocks that need not be sent to this host.

        A target that is written in order cannot be read again for hosts behind.
        """
        if self._in_order and self._of_tree[tree]:
            return ()
        first = self.phase.first
        held = ((max(begin, first), begin + count) for begin, count in self._store.held.ranges())
        return tuple(islice(((begin, stop - begin) for begin, stop in held if begin < stop), MAX_RANGES))

    # ---------------------------------------------------------------------------------------------- what comes

    def _take(self, tree: int, message: TreeBlock | BlockHeld) -> None:
        limb, edges = self._limbs[tree], self._of_tree[tree]
        if isinstance(message, BlockHeld):
            limb.stored += 1
            for edge in edges:
                edge.name(message.number)
            return
        parcel = Parcel(message.number, message.data, 1 + len(edges), limb.room)
        if self._in_order:
            limb.early.append(parcel)
            self._pass_on(tree, parcel)
            return
        self._gathered.append((tree, parcel))
        if len(self._gathered) == _BLOCKS_AT_ONCE:
            self._store_gathered()

    def _pass_on(self, tree: int, parcel: Parcel) -> None:
        for edge in self._of_tree[tree]:
            edge.push(parcel)

    def _store_gathered(self) -> None:
        """Store what came in this turn, and pass it on, but for what is known by then not to be what was sent."""
        if not self._gathered:
            return
        batch, self._gathered = _Batch(self._gathered), []
        self._write(batch)
        for tree, parcel in batch.parcels:
            if not batch.written or self._store.has(parcel.number):
                self._pass_on(tree, parcel)
                continue
            for edge in self._of_tree[tree]:
                edge.leave_out()
                parcel.used()
        self._settle()

    def _store_early(self, tree: int) -> None:
        """Write early blocks of a target in order when their position is reached."""
        early = self._limbs[tree].early
        while early and early[0].number < self._store.reach and self._writer.ready:
            self._write(_Batch([(tree, early.popleft())]))

    def _write(self, batch: _Batch) -> None:
        self._writing.append(batch)
        self._writer.put(batch.parcels[0][1].number, batch)

    def _put(self, _first: int, batch: _Batch) -> None:
        """Store the blocks, in the writing thread."""
        rows = {parcel.number: parcel.data for _, parcel in batch.parcels}
        for first, stop in runs_of(sorted(rows)):
            self._store.put_all(first, [rows[number] for number in range(first, stop)])
        batch.written = True

    def _settle(self) -> None:
        """Count written blocks as done."""
        while self._writing and self._writing[0].written:
            for tree, parcel in self._writing.popleft().parcels:
                self._limbs[tree].stored += 1
                parcel.used()
            self._unreported = True

    def _load(self, number: int) -> Parcel | None:
        data = self._store.block(number)
        return None if data is None else Parcel(number, data, 1, self._loaded)

    # ---------------------------------------------------------------------------------------------------- work

    def _reads(self, limb: _Limb) -> bool:
        return limb.room.left and not limb.early and self._writer.ready

    def _carried(self) -> int:
        return super()._carried() + sum(limb.inlet.carried for limb in self._limbs)

    def _watch(self, poll: select.poll, now: float) -> float:
        wait = self.phase.timings.heartbeat
        for limb in self._limbs:
            wait = 0.0 if limb.inlet.watch(poll, self._reads(limb)) else min(wait, limb.inlet.wait(now))
        for stream, _, _ in self._guests:
            poll.register(stream.socket, select.POLLIN)
            wait = 0.0 if stream.pending else wait
        for number, limb in enumerate(self._limbs):
            wait = min(wait, self._acknowledge(number, limb, now))
        if self._unreported:
            wait = min(wait, max(0.0, self._settled_at + _SETTLED_SECONDS - now))
        return wait

    def _work(self, ready: dict[int, int], now: float) -> None:
        self._meet(ready, now)
        self._steps += 1
        until = now + _STEP_SECONDS
        for offset in range(len(self._limbs)):
            # Each tree comes first in rotation: the last may find little time left.
            number = (self._steps + offset) % len(self._limbs)
            limb = self._limbs[number]
            limb.inlet.work(ready, partial(self._reads, limb), until)
            limb.inlet.tick(self._passed)
            self._store_early(number)
            self._finish(number, limb)
        self._store_gathered()
        self._settle()
        if self._unreported and (now >= self._settled_at + _SETTLED_SECONDS or self._all_here):
            self._unreported, self._settled_at = False, now
            self._events(Settled())

    @property
    def _all_here(self) -> bool:
        return not self._writing and all(limb.inlet.complete for limb in self._limbs)

    def _finish(self, number: int, limb: _Limb) -> None:
        if limb.inlet.complete:
            for edge in self._of_tree[number]:
                edge.end()
        if limb.inlet.reason:
            self._note_lost(self.phase.trees[number].parent(self.phase.place), self.phase.place, limb.inlet.reason)

    def _acknowledge(self, number: int, limb: _Limb, now: float) -> float:
        """Acknowledge the progress of this tree here and behind; return the seconds until the next call."""
        behind = [edge.taken for edge in self._of_tree[number] if edge.live]
        return limb.inlet.acknowledge(min([limb.stored, *behind]), not self._reads(limb), now)

    def _word(self, now: float) -> HostReport:
        word = super()._word(now)
        return HostReport(word.flows, word.lost, self._writer.pace, self._writer.writing)

    def _give_back(self) -> None:
        for stream, _, _ in self._guests:
            stream.close()
        for limb in self._limbs:
            limb.inlet.close(self._ended.reason if self._ended else "")
        self._writer.close()
        # They refer to this object, and hold its memory.
        self._guests.clear()
        self._limbs.clear()
        del self._writer
