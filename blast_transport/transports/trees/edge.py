"""Edge from a host to one of its children in one tree: blocks in order, at the tree's rate."""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.blocks.block_map import BlockMap
from blast_transport.transports.trees.flows import INTERVALS, Meter
from blast_transport.transports.trees.pacing import TreePacer
from blast_transport.transports.trees.parcel import Parcel
from blast_transport.transports.trees.plan import TreeTimings
from blast_transport.transports.trees.protocol.messages import (
    BlockHeld,
    EdgeCredit,
    EdgeEnd,
    Have,
    Message,
    Open,
    TreeAbort,
    TreeDecoder,
    TreeHeartbeat,
)
from blast_transport.transports.trees.stream import EdgeStream
from blast_transport.transports.trees.widening import Widening

_IN, _OUT = select.POLLIN, select.POLLOUT
_UNSENT_SECONDS, _MIN_UNSENT, _MAX_UNSENT = 0.05, 128 << 10, 4 << 20
_LISTENED = 64
"""Messages of a child that are processed in one step."""

Load = Callable[[int], Parcel | None]
"""Returns a held block from the store, None if it is no longer held."""


@dataclass(frozen=True, slots=True)
class ChildPath:
    """Way to the child at this place in one tree, at the tree's bits/s."""

    tree: int
    child: int
    rate: float


class EdgeState(Enum):
    """State of an edge."""

    CONNECTING = auto()
    OPENING = auto()
    OPEN = auto()
    LOST = auto()


def _no_blocks(number: int, size: int) -> None:
    raise RemoteProtocolError("a child sends no blocks")


class Edge:
    """Not thread-safe. `taken`: entries that the child and all behind it have, or that were not for it.

    `reason`: why it is lost. `full`: the child does not read, by its own doing.
    """

    def __init__(self, way: ChildPath, timings: TreeTimings, load: Load, now: float) -> None:
        self.tree, self.child = way.tree, way.child
        self.state = EdgeState.CONNECTING
        self.reason = ""
        self.full = False
        self._meter = Meter(now)
        self._widening = Widening()
        self._measured = 0
        self._target_streams = 1
        self.again_at = now
        self._rate = way.rate
        self._timings = timings
        self._load_block = load
        self._pace = TreePacer(way.rate, now)
        self._began = self._sent_at = now
        # Seconds without a message from the child.
        self._silent = 0.0
        self._streams: list[EdgeStream] = []
        self._queue: deque[Parcel | int] = deque()
        self._queued = 0
        self._holds = BlockMap()
        # Entries that were given to streams, that came through, and that are not for the child.
        self._sent = self._acknowledged = self._left_out = 0
        self._ending = self._end_sent = False

    # ------------------------------------------------------------------------------------------ queueing

    @property
    def live(self) -> bool:
        """Return whether the edge is not lost."""
        return self.state is not EdgeState.LOST

    @property
    def settled(self) -> bool:
        """Return whether the child has reported its blocks, or cannot be reached."""
        return self.state in (EdgeState.OPEN, EdgeState.LOST)

    def holds(self, number: int) -> bool:
        """Return whether the child has reported that it holds this block."""
        return number in self._holds

    @property
    def taken(self) -> int:
        """Return the number of entries that are done."""
        return self._acknowledged + self._left_out

    @property
    def backlog(self) -> int:
        """Return the bytes that wait here."""
        return self._queued + sum(stream.waiting for stream in self._streams)

    def push(self, parcel: Parcel) -> None:
        """Queue a block for the child, or its number, if the child holds it."""
        if self.live and not self.holds(parcel.number):
            self._queue.append(parcel)
            self._queued += len(parcel.data)
        else:
            self.name(parcel.number)
            parcel.used()

    def name(self, number: int) -> None:
        """Queue a stored block: its number, or later its bytes from the store."""
        if self.live:
            self._queue.append(number)

    def leave_out(self) -> None:
        """Count an entry that the child does not need."""
        self._left_out += 1

    def end(self) -> None:
        """End the queue."""
        self._ending = True

    @property
    def through(self) -> bool:
        """Return whether all entries are acknowledged, and the child has got EdgeEnd."""
        return not self.live or (self._end_sent and self._acknowledged == self._sent)

    # ------------------------------------------------------------------------------------------- connections

    def connected(self, sock: socket.socket, number: int, first: bytes, now: float) -> None:
        """Take over a connection to the child; `first` is the Join for its session."""
        if not self.live or number != len(self._streams):
            sock.close()
            return
        stream = EdgeStream(sock, TreeDecoder(_no_blocks))
        stream.keep_short(int(min(max(self._rate / 8 * _UNSENT_SECONDS, _MIN_UNSENT), _MAX_UNSENT)))
        stream.give(first)
        stream.queue(Open(self.tree, number))
        self._streams.append(stream)
        if number == 0:
            self.state = EdgeState.OPENING
        self._silent, self._sent_at = 0.0, now

    def failed(self, reason: str, now: float) -> None:
        """Handle the failure of a connection."""
        if self._streams:
            self._target_streams = len(self._streams)
            self._widening.resign()
        elif self.live:
            self._retry_or_lose(reason, self._timings.reach, now)

    def lose(self, reason: str) -> None:
        """Give the edge up."""
        if self.live:
            self.state, self.reason = EdgeState.LOST, reason
            self._close_streams()
            for item in self._queue:
                if isinstance(item, Parcel):
                    item.used()
            self._queue.clear()
            self._queued = 0

    def close(self) -> None:
        """Close the edge."""
        if self.live and self._streams:
            self._streams[0].queue(TreeAbort("the phase is over"))
            with suppress(RemoteError):
                self._streams[0].send(_MIN_UNSENT)
        self.lose("the phase is over")

    def stream_to_connect(self, now: float) -> int | None:
        """Return the number of the stream to connect, if any."""
        if self.state is EdgeState.CONNECTING:
            return 0 if now >= self.again_at else None
        return (
            len(self._streams) if self.state is EdgeState.OPEN and len(self._streams) < self._target_streams else None
        )

    def measure(self, now: float) -> tuple[float, bool]:
        """Return the bits/s over about a second, and whether the network limits them; call it repeatedly."""
        rate, held_back = self._meter.take(now)
        self._measured += 1
        if self._measured % INTERVALS == 0 and self._widening.judge(len(self._streams), rate, held_back):
            self._target_streams = len(self._streams) + 1
        return rate, held_back

    def _retry_or_lose(self, reason: str, timeout: float, now: float) -> None:
        if now >= self._began + timeout:
            self.lose(reason)
        else:
            self._close_streams()
            self.state, self.again_at = EdgeState.CONNECTING, now + self._timings.retry

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    # -------------------------------------------------------------------------------------------------- work

    @property
    def carried(self) -> int:
        """Return the bytes in both directions, over the present streams."""
        return sum(stream.carried for stream in self._streams)

    def watch(self, poll: select.poll) -> bool:
        """Register for `poll`; return true if something can be read that poll does not see."""
        for stream in self._streams:
            poll.register(stream.socket, _IN | (_OUT if stream.blocked else 0))
        return any(stream.pending for stream in self._streams)

    def wait(self, now: float) -> float:
        """Return the seconds until it has something to do by itself."""
        if not self._streams:
            return self._timings.heartbeat
        due = min(self._sent_at + self._timings.heartbeat - now, self._timeout - self._silent)
        if self._has_more and any(not stream.blocked for stream in self._streams):
            due = min(due, self._pace.wait(now))
        return max(0.0, due)

    def work(self, ready: dict[int, int], now: float) -> None:
        """Read the child's messages, and send blocks that may leave."""
        try:
            for number, stream in enumerate(list(self._streams)):
                events = ready.get(stream.socket.fileno(), 0)
                stream.blocked = stream.blocked and not events & _OUT
                if events & ~_OUT or stream.pending:
                    self._listen(number, stream)
            self._pour(now)
        except RemoteProtocolError as error:
            self.lose(f"broke the protocol: {error}")
        except RemoteError as error:
            if self.state is EdgeState.OPENING:
                self._retry_or_lose(str(error), self._timings.assembly, now)
            else:
                self.lose(str(error))

    def tick(self, now: float, passed: float) -> None:
        """Do the due work after `passed` seconds."""
        self._silent += passed
        if self.state in (EdgeState.OPENING, EdgeState.OPEN) and self._silent >= self._timeout:
            self.lose(f"no message for {self._timeout:g} s")
        if self.state is EdgeState.OPEN and now >= self._sent_at + self._timings.heartbeat:
            self._sent_at = now
            if not self._streams[0].waiting:
                self._streams[0].queue(TreeHeartbeat())

    @property
    def _timeout(self) -> float:
        return self._timings.answer if self.state is EdgeState.OPENING else self._timings.silence

    @property
    def _has_more(self) -> bool:
        waits = any(stream.waiting for stream in self._streams)
        return waits or (self.state is EdgeState.OPEN and (bool(self._queue) or (self._ending and not self._end_sent)))

    def _listen(self, number: int, stream: EdgeStream) -> None:
        for _ in range(_LISTENED):
            messages = stream.receive()
            if not messages:
                return
            self._silent = 0.0
            for message in messages:
                if number:
                    raise RemoteProtocolError("a message on a stream for blocks only")
                self._receive(message)

    def _receive(self, message: Message) -> None:
        match message:
            case Have(ranges) if self.state is EdgeState.OPENING:
                for first, count in ranges:
                    self._holds.add_range(first, count)
                self.state = EdgeState.OPEN
            case EdgeCredit(entries, full) if (
                self.state is EdgeState.OPEN and self._acknowledged <= entries <= self._sent
            ):
                self._acknowledged, self.full = entries, full
            case TreeHeartbeat():
                pass
            case TreeAbort(reason):
                raise RemoteError(reason or "left the tree")
            case _:
                raise RemoteProtocolError(f"{type(message).__name__} in state {self.state.name}")

    def _pour(self, now: float) -> None:
        for stream in self._streams:
            while not stream.blocked and self._pace.permits(now):
                if stream.waiting < self._pace.piece:
                    self._load(stream)
                if not stream.waiting:
                    break
                sent = stream.send(self._pace.piece)
                if sent:
                    self._sent_at = now
                    self._pace.sent(sent)
                    self._meter.sent(sent)
        blocked = bool(self._streams) and all(stream.blocked for stream in self._streams)
        self._meter.see(blocked and not self.full, now)

    def _load(self, stream: EdgeStream) -> None:
        """Give a stream what comes next, about a piece."""
        while self.state is EdgeState.OPEN and self._queue and stream.waiting < self._pace.piece:
            item = self._queue.popleft()
            if isinstance(item, Parcel):
                self._queued -= len(item.data)
                stream.give_block(item)
            elif self.holds(item):
                stream.queue(BlockHeld(item))
            elif (parcel := self._load_block(item)) is not None:
                stream.give_block(parcel)
            else:
                self._left_out += 1
                continue
            self._sent += 1
        if self._ending and not self._queue and not self._end_sent and self.state is EdgeState.OPEN:
            # Behind what this stream has; another one's blocks may come later, and are counted.
            self._end_sent = True
            self._streams[0].queue(EdgeEnd(self._sent))
