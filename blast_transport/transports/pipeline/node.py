"""A receiving node of a pipeline: takes from its predecessor into the store, and serves its successor from there."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.links.dialling import Dialer, dial
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.transports.pipeline.connections.compiled_pump import open_intake
from blast_transport.transports.pipeline.connections.copy_pump import BlockIntake, ReplayOutlet
from blast_transport.transports.pipeline.connections.dialling import Dialler, join_message
from blast_transport.transports.pipeline.connections.feed import Feed
from blast_transport.transports.pipeline.connections.file_pump import WrittenOutlet
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.outlets import open_outlet
from blast_transport.transports.pipeline.connections.pump import Intake, Outlet
from blast_transport.transports.pipeline.protocol.core import NodeCore
from blast_transport.transports.pipeline.protocol.events import (
    Admit,
    BytesArrived,
    CloseFetch,
    CloseUpstream,
    Command,
    Complete,
    DataStored,
    Fetch,
    FetchLost,
    FromPredecessor,
    FromSource,
    Joined,
    PredecessorLost,
    Refuse,
    SendUpstream,
    Skip,
)
from blast_transport.transports.pipeline.protocol.messages import Held, Message, Pget, PipelineHeartbeat
from blast_transport.transports.pipeline.protocol.phase import PipelineEvent, PipelinePhase
from blast_transport.transports.pipeline.protocol.skips import Skips
from blast_transport.transports.pipeline.runner import Runner
from blast_transport.transports.pipeline.successor import Successor

_LAG_BYTES, _FILE_LAG_BYTES = 8 << 20, 32 << 20
"""Bytes by which a node may be ahead of its successor. Data that cannot be read again: a quarter of the kept data, for
as many lost nodes. A file: so that the chain proceeds together, because lagging nodes need data that no cache holds any
more, and end up alone."""
_DEATHS = 4
"""With all that a node and its neighbors' kernels hold."""
_SOURCE = 0


class PipelineNode(Runner):
    """Node of one phase that fills `store`. Its session calls `accept` with connecting nodes."""

    def __init__(
        self,
        phase: PipelinePhase,
        store: BlockStore,
        events: Callable[[PipelineEvent], None],
        connect: Dialer = dial,
    ) -> None:
        position = _first_byte(phase, store)
        self._core = core = NodeCore(phase, position, Skips(store.layout.block_size))
        super().__init__(phase, core, events, connect)
        # The session may close its own descriptor before the nodes behind have all data of the file.
        self._descriptor = None if store.descriptor is None else os.dup(store.descriptor)
        self._intake, outlet = self._pumps(store, position)
        self._successor = Successor(phase, core.down, outlet, self._handle, self._connections)
        self._predecessor = Feed(
            self._intake,
            self._may_take,
            self._arrived,
            self._from_predecessor,
            lambda reason: self._handle(PredecessorLost()),
        )
        self._source = Feed(
            self._intake,
            self._may_fetch,
            self._arrived,
            self._from_source,
            lambda reason: self._handle(FetchLost(reason)),
        )
        self._source_dialler = Dialler(connect, self._waker, phase.timings.answer)
        self._candidate: Link | None = None
        self._asked = Pget(0, 1)
        self._store = store
        self._storing = False

    def accept(self, sock: socket.socket, name: str) -> None:
        """Take over the socket of the node `name`, which has sent Join. May be called from any thread."""
        self._waker.post(lambda: self._joined(sock, name))

    def _pumps(self, store: BlockStore, position: int) -> tuple[Intake, Outlet]:
        if self._descriptor is not None:
            file = open_intake(store, position, self._waker.wake)
            return file, WrittenOutlet(open_outlet(store.engine, self._descriptor), file)
        intake = BlockIntake(store, position, self._waker.wake, self.phase.buffer)
        return intake, ReplayOutlet(intake.replay, store)

    def _joined(self, sock: socket.socket, name: str) -> None:
        place = self.phase.place(name)
        if self._ended is not None or place is None or place >= self.phase.index:
            sock.close()
            return
        self._candidate = Link(sock)
        self._handle(Joined(place))

    def _obey_one(self, command: Command) -> None:
        match command:
            case Admit(last_message):
                self._close_feed(self._predecessor, last_message)
                self._predecessor.link, self._candidate = self._candidate, None
            case Refuse(message):
                self._close_candidate(message)
            case SendUpstream(message):
                self._predecessor.send(message)
            case CloseUpstream():
                self._close_feed(self._predecessor, None)
            case Fetch(offset, stop):
                self._fetch(Pget(offset, stop))
            case Skip(offset):
                self._intake.skip(offset)
            case CloseFetch():
                self._source_dialler.cancel()
                self._close_feed(self._source, None)
            case Complete(stop, final):
                self._complete(stop, final)
            case _:
                self._successor.obey(command)

    def _complete(self, stop: int, final: bool) -> None:
        size = self._store.layout.size
        if final and size is not None and size != stop:
            raise RemoteProtocolError(f"the data ended at byte {stop}, but {size} bytes were announced")
        self._intake.complete(final)
        self._storing = True
        self._see_stored()

    def _see_stored(self) -> None:
        if self._storing and self._intake.drained:
            self._storing = False
            self._handle(DataStored())

    def _close_feed(self, feed: Feed, last_message: Message | None) -> None:
        if last_message is not None:
            feed.send(last_message)
        link = feed.take_link()
        if link is not None:
            self._closing.add(link)

    def _close_candidate(self, message: Message) -> None:
        link, self._candidate = self._candidate, None
        assert link is not None
        link.send(message)
        self._closing.add(link)

    def _fetch(self, pget: Pget) -> None:
        self._asked = pget
        self._source_dialler.dial(
            self.phase.chain[_SOURCE], self._fetch_connected, lambda reason, _: self._handle(FetchLost(reason))
        )

    def _fetch_connected(self, link: Link) -> None:
        self._source.link = link
        self._source.send(join_message(self.phase))

    def _from_predecessor(self, message: Message) -> None:
        if isinstance(message, Held):
            self._check_held(message.stop)
        self._handle(FromPredecessor(message))

    def _check_held(self, stop: int) -> None:
        """Raise RemoteProtocolError unless the bytes before `stop` may be skipped.

        A late receiver may lack them, and requests them from the sender at the end. So may a file, but not a target
        that accepts blocks in order, or keeps none for the nodes behind.
        """
        layout, position = self._store.layout, self._intake.position
        in_file = self._descriptor is not None and layout.size is not None and stop <= layout.size
        if not in_file or position % layout.block_size or (stop % layout.block_size and stop != layout.size):
            raise RemoteProtocolError(f"HELD up to byte {stop}, which cannot be passed over from byte {position} on")

    def _from_source(self, message: Message) -> None:
        """Request data after the source's first message: another host on the socket cannot consume the request then."""
        if isinstance(message, PipelineHeartbeat):
            self._source.send(self._asked)
        self._handle(FromSource(message))

    def _may_take(self) -> bool:
        if not self._core.up.receiving:
            raise RemoteError("broke the protocol: data that was not requested")
        return self._has_room()

    def _may_fetch(self) -> bool:
        if not self._core.up.fetching:
            raise RemoteError("broke the protocol: data that was not requested")
        return self._has_room()

    def _has_room(self) -> bool:
        if not self._intake.ready:
            return False
        down = self._core.down
        file = self._descriptor is not None
        lag = _FILE_LAG_BYTES if file else self.phase.buffer // _DEATHS or _LAG_BYTES
        ahead = down.ahead(self._intake.position)
        # The first message shows that the source has begun: without it the successor gets no earlier data.
        if down.alone or not self._core.node.begun or ahead < lag or (file and down.lagging):
            return True
        self._core.hold_up()
        return False

    def _arrived(self) -> None:
        self._handle(BytesArrived(self._intake.position))

    def _watch(self, poll: select.poll) -> bool:
        self._successor.watch(poll, self._intake.servable)
        at_once = self._predecessor.watch(poll)
        return self._source.watch(poll) or at_once or self._successor.pending

    def _waited(self, seconds: float) -> None:
        if self._predecessor.expects and self._intake.ready:
            self._core.waited(seconds)

    def _work(self, ready: dict[int, int], now: float) -> None:
        self._core.node.stored_before = _first_byte(self.phase, self._store)
        for feed in (self._predecessor, self._source):
            if feed.link is not None:
                events = ready.get(feed.link.socket.fileno(), 0)
                self._let_gather(feed.pause(events, now))
                feed.work(events)
        self._see_stored()
        if (pace := self._intake.pace) is not None:
            self._obey(self._core.store_does(pace, self._intake.writing, now))
        self._successor.listen()
        self._successor.pour(self._intake.servable)

    def _let_gather(self, seconds: float) -> None:
        if seconds:
            time.sleep(seconds)
            self._waited(seconds)

    def _close(self) -> None:
        for feed in (self._predecessor, self._source):
            link = feed.take_link()
            if link is not None:
                link.close()
        self._source_dialler.cancel()
        self._successor.close()
        self._intake.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
        # They refer to this object, and hold its memory.
        del self._predecessor, self._source, self._successor, self._intake


def _first_byte(phase: PipelinePhase, store: BlockStore) -> int:
    """Return the first byte that this node needs: of the phase's first block, or behind its held blocks."""
    position = store.layout.offset(max(phase.first_block, store.position))
    return position if store.layout.size is None else min(position, store.layout.size)
