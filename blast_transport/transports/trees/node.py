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
from blast_transport.store.block_store import BlockStore
from blast_transport.store.eager_writer import EagerWriter
from blast_transport.store.store_writer import StoreWriter
from blast_transport.transports.trees.events import Event, Settled
from blast_transport.transports.trees.host import Host
from blast_transport.transports.trees.inlet import Inlet
from blast_transport.transports.trees.parcel import Parcel, Room
from blast_transport.transports.trees.plan import NOWHERE, TreesPhase
from blast_transport.transports.trees.protocol.messages import (
    MAX_RANGES,
    MAX_STREAMS,
    Block,
    Message,
    Named,
    Open,
    Reader,
)
from blast_transport.transports.trees.protocol.words import Word
from blast_transport.transports.trees.stream import Stream

_MEMORY_BYTES = 64 << 20
"""Of blocks that are under way here, in all trees together."""
_FEWEST_BLOCKS = 4
"""Of each tree, however many there are."""
_STORE_BYTES = 8 << 20
_BLOCKS_AT_ONCE = 16
"""In one write: about what a processor's cache holds."""
_TURN_SECONDS = 0.015
"""How long what came may wait to go on, and neighbors to hear that we live."""
_SETTLED_SECONDS = 0.1
"""Between two words to the session, which tells the sender: each goes all the way."""


class _Batch:
    """Blocks that are put into the store together, each with its tree; `written` is for whoever writes to say."""

    def __init__(self, parcels: list[tuple[int, Parcel]]) -> None:
        self.parcels = parcels
        self.written = False

    def __len__(self) -> int:
        return sum(len(parcel.data) for _, parcel in self.parcels)


class _Limb:
    """One tree at this host: what comes, and who it goes to. `stored`: of its entries so many need nothing more."""

    def __init__(self, inlet: Inlet, room: Room) -> None:
        self.inlet, self.room = inlet, room
        self.stored = 0
        # What comes too early for a target that takes blocks in order.
        self.early: deque[Parcel] = deque()


class Node(Host):
    """One host of one phase, filling `store`. Its session calls `accept` with whoever joins."""

    def __init__(
        self, phase: TreesPhase, store: BlockStore, events: Callable[[Event], None], connect: Dialer = dial
    ) -> None:
        super().__init__(phase, events, connect)
        self._store = store
        most = max(_MEMORY_BYTES // max(1, len(phase.trees)), _FEWEST_BLOCKS * store.layout.block_size)
        self._limbs = [self._limb(number, most) for number in range(len(phase.trees))]
        # Out of the store, for who lacks what we hold.
        self._loaded = Room(_MEMORY_BYTES)
        # Those that have joined, and not said what they want.
        self._guests: list[tuple[Stream, str, float]] = []
        self._in_order = store.target.in_order
        writer = StoreWriter[_Batch] if self._in_order else EagerWriter[_Batch]
        self._writer: StoreWriter[_Batch] | EagerWriter[_Batch] = writer(self._put, self._waker.wake, _STORE_BYTES)
        self._gathered: list[tuple[int, Parcel]] = []
        self._writing: deque[_Batch] = deque()
        self._turns = 0
        self._unsaid = False
        self._settled_at = 0.0

    def accept(self, sock: socket.socket, name: str) -> None:
        """The host `name` has connected and said Join; its socket is ours now. From any thread."""
        self._waker.post(lambda: self._joined(sock, name))

    def _limb(self, number: int, most: int) -> _Limb:
        limb = _Limb(Inlet(lambda message: self._take(number, message), self.phase.timings), Room(most))
        if self.phase.trees[number].parent(self.phase.place) == NOWHERE:
            limb.inlet.total = 0
        return limb

    # ---------------------------------------------------------------------------------------------- who comes

    def _joined(self, sock: socket.socket, name: str) -> None:
        most = MAX_STREAMS * len(self.phase.trees)
        if self._ended is not None or len(self._guests) >= most:
            sock.close()
            return
        self._guests.append((Stream(sock, Reader(self._check)), name, time.monotonic()))

    def _check(self, number: int, size: int) -> None:
        layout = self._store.layout
        most = layout.length(number) if number < layout.blocks else 0
        if number < self.phase.first or not (size == most or (not layout.known and 0 < size < most)):
            raise RemoteProtocolError(f"block {number} of {size} bytes, which there is not")

    def _meet(self, ready: dict[int, int], now: float) -> None:
        """Hear which stream each of those is that have joined."""
        waiting = []
        for stream, name, since in self._guests:
            try:
                messages = stream.receive() if ready.get(stream.socket.fileno(), 0) or stream.pending else []
                if messages:
                    self._admit(stream, name, messages[0], now).hear_all(messages[1:])
                elif now >= since + self.phase.timings.answer:
                    raise RemoteProtocolError("says nothing")
                else:
                    waiting.append((stream, name, since))
            except RemoteError:
                stream.close()
        self._guests = waiting

    def _admit(self, stream: Stream, name: str, message: Message, now: float) -> Inlet:
        phase = self.phase
        if not isinstance(message, Open) or message.tree >= len(phase.trees):
            raise RemoteProtocolError("no Open of a tree that there is")
        parent = phase.trees[message.tree].parent(phase.place)
        if parent == NOWHERE or phase.name(parent) != name:
            raise RemoteProtocolError(f"{name!r} is not our parent in tree {message.tree}")
        inlet = self._limbs[message.tree].inlet
        inlet.accept(stream, message.stream, self._held(message.tree), now)
        return inlet

    def _held(self, tree: int) -> tuple[Range, ...]:
        """What need not be sent to us. What was given in order cannot be read again, for those behind us."""
        if self._in_order and self._of_tree[tree]:
            return ()
        first = self.phase.first
        held = ((max(begin, first), begin + count) for begin, count in self._store.held.ranges())
        return tuple(islice(((begin, stop - begin) for begin, stop in held if begin < stop), MAX_RANGES))

    # ---------------------------------------------------------------------------------------------- what comes

    def _take(self, tree: int, message: Block | Named) -> None:
        limb, edges = self._limbs[tree], self._of_tree[tree]
        if isinstance(message, Named):
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
        """What a target takes in order waits until it is not too early for it."""
        early = self._limbs[tree].early
        while early and early[0].number < self._store.reach and self._writer.ready:
            self._write(_Batch([(tree, early.popleft())]))

    def _write(self, batch: _Batch) -> None:
        self._writing.append(batch)
        self._writer.put(batch.parcels[0][1].number, batch)

    def _put(self, _first: int, batch: _Batch) -> None:
        """By whoever writes."""
        rows = {parcel.number: parcel.data for _, parcel in batch.parcels}
        for first, stop in runs_of(sorted(rows)):
            self._store.put_all(first, [rows[number] for number in range(first, stop)])
        batch.written = True

    def _settle(self) -> None:
        """What was written needs nothing more here."""
        while self._writing and self._writing[0].written:
            for tree, parcel in self._writing.popleft().parcels:
                self._limbs[tree].stored += 1
                parcel.used()
            self._unsaid = True

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
            wait = min(wait, self._tell(number, limb, now))
        if self._unsaid:
            wait = min(wait, max(0.0, self._settled_at + _SETTLED_SECONDS - now))
        return wait

    def _work(self, ready: dict[int, int], now: float) -> None:
        self._meet(ready, now)
        self._turns += 1
        until = now + _TURN_SECONDS
        for offset in range(len(self._limbs)):
            # Each comes first in its turn: the last may find little time left.
            number = (self._turns + offset) % len(self._limbs)
            limb = self._limbs[number]
            limb.inlet.work(ready, partial(self._reads, limb), until)
            limb.inlet.tick(self._passed)
            self._store_early(number)
            self._finish(number, limb)
        self._store_gathered()
        self._settle()
        if self._unsaid and (now >= self._settled_at + _SETTLED_SECONDS or self._all_here):
            self._unsaid, self._settled_at = False, now
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

    def _tell(self, number: int, limb: _Limb, now: float) -> float:
        """Say how far this tree is at us and behind us; seconds until there may be more to say."""
        behind = [edge.taken for edge in self._of_tree[number] if edge.live]
        return limb.inlet.tell(min([limb.stored, *behind]), not self._reads(limb), now)

    def _word(self, now: float) -> Word:
        word = super()._word(now)
        return Word(word.flows, word.lost, self._writer.pace, self._writer.writing)

    def _give_back(self) -> None:
        for stream, _, _ in self._guests:
            stream.close()
        for limb in self._limbs:
            limb.inlet.close(self._ended.reason if self._ended else "")
        self._writer.close()
        # They call us, and hold our memory.
        self._guests.clear()
        self._limbs.clear()
        del self._writer
