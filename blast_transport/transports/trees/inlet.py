"""What comes to a host in one tree: the streams from its parent, and what it says back."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.blocks.block_map import Range
from blast_transport.transports.trees.plan import Timings
from blast_transport.transports.trees.protocol.messages import (
    Alive,
    Block,
    End,
    Holds,
    Message,
    Named,
    Quit,
    Taken,
)
from blast_transport.transports.trees.stream import Stream

_IN, _OUT = select.POLLIN, select.POLLOUT
_TAKEN_SECONDS = 0.01
"""Between two words of how far we are, unless it is all that came: each costs both sides a wake-up."""
_WORDS_BYTES = 1 << 16


class Inlet:
    """Not thread-safe. `entries`: blocks that came or were named; `total`: how many there are, once that is known.

    `take` is given each. `reason`: why the way to the parent is lost.
    """

    def __init__(self, take: Callable[[Block | Named], None], timings: Timings) -> None:
        self.entries = 0
        self.total: int | None = None
        self.reason = ""
        self._take = take
        self._timings = timings
        self._streams: list[Stream] = []
        self._told = -1
        self._full = False
        self._said = self._told_at = 0.0
        # For so many seconds nothing was heard of the parent.
        self._silent = 0.0

    @property
    def complete(self) -> bool:
        """All has come."""
        return self.total is not None and self.entries >= self.total

    @property
    def carried(self) -> int:
        """Bytes both ways, over the streams that there are."""
        return sum(stream.carried for stream in self._streams)

    def accept(self, stream: Stream, number: int, held: tuple[Range, ...], now: float) -> None:
        """The parent has opened a stream; of what we hold it hears on the first. Raises RemoteProtocolError."""
        if number != len(self._streams) or self.reason:
            raise RemoteProtocolError(f"stream {number} of a tree, where {len(self._streams)} are open")
        self._streams.append(stream)
        self._silent, self._said = 0.0, now
        if number == 0:
            self._say(Holds(held), now)

    def watch(self, poll: select.poll, reads: bool) -> bool:
        """Register for `poll`, for what comes only if we read now; True: something can be read that it does not see."""
        for stream in self._streams:
            poll.register(stream.socket, (_IN if reads else 0) | (_OUT if stream.waiting else 0))
        return reads and any(stream.pending for stream in self._streams)

    def wait(self, now: float) -> float:
        """Seconds until it has something to do by itself."""
        if not self._streams:
            return self._timings.heartbeat
        return max(0.0, min(self._said + self._timings.heartbeat - now, self._timings.silence - self._silent))

    def work(self, ready: dict[int, int], may_read: Callable[[], bool], until: float) -> None:
        """Read what is there, until then at the latest: a part of it in any case."""
        try:
            for stream in self._streams:
                if ready.get(stream.socket.fileno(), 0) & ~_OUT or stream.pending:
                    self._read(stream, may_read, until)
        except RemoteError as error:
            self.lose(str(error))

    def tell(self, taken: int, full: bool, now: float) -> float:
        """So many of our entries are through here and behind us; seconds until we are to be asked again."""
        if not self._streams:
            return self._timings.heartbeat
        if taken != self._told or full != self._full:
            left = self._told_at + _TAKEN_SECONDS - now
            if left > 0 and taken < self.entries and full == self._full:
                return left
            self._told, self._full, self._told_at = taken, full, now
            self._say(Taken(taken, full), now)
        elif now >= self._said + self._timings.heartbeat:
            self._say(Alive(), now)
        return self._timings.heartbeat

    def tick(self, passed: float) -> None:
        """So many seconds have passed."""
        self._silent += passed
        # Who does not read by its own doing cannot hear either.
        if self._full or self.complete:
            self._silent = 0.0
        elif self._streams and self._silent >= self._timings.silence:
            self.lose(f"nothing heard of it for {self._timings.silence:g} s")

    def lose(self, reason: str) -> None:
        """The way to the parent is of no more use."""
        self._close_streams()
        if not self.complete and not self.reason:
            self.reason = reason

    def close(self, reason: str) -> None:
        """It is over."""
        if self._streams:
            with suppress(RemoteError):
                self._streams[0].say(Quit(reason))
                self._streams[0].send(_WORDS_BYTES)
        self._close_streams()

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def _say(self, message: Message, now: float) -> None:
        self._said = now
        try:
            self._streams[0].say(message)
            self._streams[0].send(_WORDS_BYTES)
            if self._streams[0].waiting > _WORDS_BYTES:
                raise RemoteError("takes no messages")
        except RemoteError as error:
            self.lose(str(error))

    def _read(self, stream: Stream, may_read: Callable[[], bool], until: float) -> None:
        while may_read():
            before = stream.progress
            for message in stream.receive():
                self.hear(message)
            if stream.progress == before:
                return
            self._silent = 0.0
            if time.monotonic() >= until:
                return

    def hear_all(self, messages: Iterable[Message]) -> None:
        """The parent has said this, and is lost where it may not, or has left."""
        try:
            for message in messages:
                self.hear(message)
        except RemoteError as error:
            self.lose(str(error))

    def hear(self, message: Message) -> None:
        """The parent has said this. Raises RemoteError."""
        match message:
            case Block() | Named():
                if self.complete:
                    raise RemoteProtocolError("a block behind the last one")
                self.entries += 1
                self._take(message)
            case End(total) if self.total is None and total >= self.entries:
                self.total = total
            case Alive():
                pass
            case Quit(reason):
                raise RemoteError(reason or "left the tree")
            case _:
                raise RemoteProtocolError(f"{type(message).__name__} from a parent")
