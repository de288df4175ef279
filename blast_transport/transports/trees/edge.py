"""From a host to one of its children in one tree: what goes there, in its turn, at the tree's rate."""

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
from blast_transport.transports.trees.pacing import Pace
from blast_transport.transports.trees.parcel import Parcel
from blast_transport.transports.trees.plan import Timings
from blast_transport.transports.trees.protocol.messages import (
    Alive,
    End,
    Holds,
    Message,
    Named,
    Open,
    Quit,
    Reader,
    Taken,
)
from blast_transport.transports.trees.stream import Stream
from blast_transport.transports.trees.widening import Widening

_IN, _OUT = select.POLLIN, select.POLLOUT
_UNSENT_SECONDS, _MIN_UNSENT, _MAX_UNSENT = 0.05, 128 << 10, 4 << 20
_LISTENED = 64
"""Messages of a child that are heard in one turn."""

Load = Callable[[int], Parcel | None]
"""A block that a host holds, out of its store; None if it is there no more."""


@dataclass(frozen=True, slots=True)
class Way:
    """To the child at this place in one tree, at the tree's bits/s."""

    tree: int
    child: int
    rate: float


class State(Enum):
    """Where an edge stands."""

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

    def __init__(self, way: Way, timings: Timings, load: Load, now: float) -> None:
        self.tree, self.child = way.tree, way.child
        self.state = State.CONNECTING
        self.reason = ""
        self.full = False
        self._meter = Meter(now)
        self._widening = Widening()
        self._measured = 0
        self._wanted = 1
        self.again_at = now
        self._rate = way.rate
        self._timings = timings
        self._load_block = load
        self._pace = Pace(way.rate, now)
        self._began = self._said = now
        # For so many seconds nothing was heard of the child.
        self._silent = 0.0
        self._streams: list[Stream] = []
        self._queue: deque[Parcel | int] = deque()
        self._queued = 0
        self._holds = BlockMap()
        # Entries that were given to streams, that came through, and that are not for the child.
        self._sent = self._came = self._left_out = 0
        self._ending = self._end_said = False

    # ------------------------------------------------------------------------------------------ what is to go

    @property
    def live(self) -> bool:
        """It is not lost."""
        return self.state is not State.LOST

    @property
    def settled(self) -> bool:
        """It is known what the child holds, or that it cannot be reached."""
        return self.state in (State.OPEN, State.LOST)

    def holds(self, number: int) -> bool:
        """The child said that it holds this block."""
        return number in self._holds

    @property
    def taken(self) -> int:
        """Entries that nobody has to do anything about any more."""
        return self._came + self._left_out

    @property
    def backlog(self) -> int:
        """Bytes that wait here."""
        return self._queued + sum(stream.waiting for stream in self._streams)

    def push(self, parcel: Parcel) -> None:
        """A block goes to the child, or its number, if the child holds it."""
        if self.live and not self.holds(parcel.number):
            self._queue.append(parcel)
            self._queued += len(parcel.data)
        else:
            self.name(parcel.number)
            parcel.used()

    def name(self, number: int) -> None:
        """A block that we hold goes to the child: its number, or its bytes out of the store when its turn comes."""
        if self.live:
            self._queue.append(number)

    def leave_out(self) -> None:
        """One entry is not for the child."""
        self._left_out += 1

    def end(self) -> None:
        """Nothing more is pushed."""
        self._ending = True

    @property
    def through(self) -> bool:
        """All that was pushed has come through, and the child knows that this is all."""
        return not self.live or (self._end_said and self._came == self._sent)

    # ------------------------------------------------------------------------------------------- connections

    def connected(self, sock: socket.socket, number: int, first: bytes, now: float) -> None:
        """A connection to the child is there; `first` brings it to the session."""
        if not self.live or number != len(self._streams):
            sock.close()
            return
        stream = Stream(sock, Reader(_no_blocks))
        stream.keep_short(int(min(max(self._rate / 8 * _UNSENT_SECONDS, _MIN_UNSENT), _MAX_UNSENT)))
        stream.give(first)
        stream.say(Open(self.tree, number))
        self._streams.append(stream)
        if number == 0:
            self.state = State.OPENING
        self._silent, self._said = 0.0, now

    def failed(self, reason: str, now: float) -> None:
        """There is no connection, or no further one."""
        if self._streams:
            self._wanted = len(self._streams)
            self._widening.resign()
        elif self.live:
            self._retry_or_lose(reason, self._timings.reach, now)

    def lose(self, reason: str) -> None:
        """It is of no more use."""
        if self.live:
            self.state, self.reason = State.LOST, reason
            self._close_streams()
            for item in self._queue:
                if isinstance(item, Parcel):
                    item.used()
            self._queue.clear()
            self._queued = 0

    def close(self) -> None:
        """It is over."""
        if self.live and self._streams:
            self._streams[0].say(Quit("the phase is over"))
            with suppress(RemoteError):
                self._streams[0].send(_MIN_UNSENT)
        self.lose("the phase is over")

    def wanted(self, now: float) -> int | None:
        """The number of the stream that is to be connected, if one is."""
        if self.state is State.CONNECTING:
            return 0 if now >= self.again_at else None
        return len(self._streams) if self.state is State.OPEN and len(self._streams) < self._wanted else None

    def measure(self, now: float) -> tuple[float, bool]:
        """Bits/s over the last second or so, and whether the network holds them back; call it some times a second."""
        rate, held_back = self._meter.take(now)
        self._measured += 1
        if self._measured % INTERVALS == 0 and self._widening.judge(len(self._streams), rate, held_back):
            self._wanted = len(self._streams) + 1
        return rate, held_back

    def _retry_or_lose(self, reason: str, patience: float, now: float) -> None:
        if now >= self._began + patience:
            self.lose(reason)
        else:
            self._close_streams()
            self.state, self.again_at = State.CONNECTING, now + self._timings.retry

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    # -------------------------------------------------------------------------------------------------- work

    @property
    def carried(self) -> int:
        """Bytes both ways, over the streams that there are."""
        return sum(stream.carried for stream in self._streams)

    def watch(self, poll: select.poll) -> bool:
        """Register for `poll`; True: something can be read that poll does not see."""
        for stream in self._streams:
            poll.register(stream.socket, _IN | (_OUT if stream.blocked else 0))
        return any(stream.pending for stream in self._streams)

    def wait(self, now: float) -> float:
        """Seconds until it has something to do by itself."""
        if not self._streams:
            return self._timings.heartbeat
        due = min(self._said + self._timings.heartbeat - now, self._timeout - self._silent)
        if self._has_more and any(not stream.blocked for stream in self._streams):
            due = min(due, self._pace.wait(now))
        return max(0.0, due)

    def work(self, ready: dict[int, int], now: float) -> None:
        """Hear the child, and send what may be sent."""
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
            if self.state is State.OPENING:
                self._retry_or_lose(str(error), self._timings.assembly, now)
            else:
                self.lose(str(error))

    def tick(self, now: float, passed: float) -> None:
        """What is due, now that so many seconds have passed."""
        self._silent += passed
        if self.state in (State.OPENING, State.OPEN) and self._silent >= self._timeout:
            self.lose(f"nothing heard of it for {self._timeout:g} s")
        if self.state is State.OPEN and now >= self._said + self._timings.heartbeat:
            self._said = now
            if not self._streams[0].waiting:
                self._streams[0].say(Alive())

    @property
    def _timeout(self) -> float:
        return self._timings.answer if self.state is State.OPENING else self._timings.silence

    @property
    def _has_more(self) -> bool:
        waits = any(stream.waiting for stream in self._streams)
        return waits or (self.state is State.OPEN and (bool(self._queue) or (self._ending and not self._end_said)))

    def _listen(self, number: int, stream: Stream) -> None:
        for _ in range(_LISTENED):
            messages = stream.receive()
            if not messages:
                return
            self._silent = 0.0
            for message in messages:
                if number:
                    raise RemoteProtocolError("a word on a stream that carries blocks only")
                self._hear(message)

    def _hear(self, message: Message) -> None:
        match message:
            case Holds(ranges) if self.state is State.OPENING:
                for first, count in ranges:
                    self._holds.add_range(first, count)
                self.state = State.OPEN
            case Taken(entries, full) if self.state is State.OPEN and self._came <= entries <= self._sent:
                self._came, self.full = entries, full
            case Alive():
                pass
            case Quit(reason):
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
                    self._said = now
                    self._pace.sent(sent)
                    self._meter.sent(sent)
        blocked = bool(self._streams) and all(stream.blocked for stream in self._streams)
        self._meter.see(blocked and not self.full, now)

    def _load(self, stream: Stream) -> None:
        """Give a stream what comes next, about a piece."""
        while self.state is State.OPEN and self._queue and stream.waiting < self._pace.piece:
            item = self._queue.popleft()
            if isinstance(item, Parcel):
                self._queued -= len(item.data)
                stream.give_block(item)
            elif self.holds(item):
                stream.say(Named(item))
            elif (parcel := self._load_block(item)) is not None:
                stream.give_block(parcel)
            else:
                self._left_out += 1
                continue
            self._sent += 1
        if self._ending and not self._queue and not self._end_said and self.state is State.OPEN:
            # Behind what this stream has; another one's blocks may come later, and are counted.
            self._end_said = True
            self._streams[0].say(End(self._sent))
