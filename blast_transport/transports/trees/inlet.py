"""Inlet of a host in one tree: the streams from its parent, and the replies."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.blocks.block_map import Range
from blast_transport.transports.trees.plan import TreeTimings
from blast_transport.transports.trees.protocol.messages import (
    BlockHeld,
    EdgeCredit,
    EdgeEnd,
    Have,
    Message,
    TreeAbort,
    TreeBlock,
    TreeHeartbeat,
)
from blast_transport.transports.trees.stream import EdgeStream

_IN, _OUT = select.POLLIN, select.POLLOUT
_TAKEN_SECONDS = 0.01
"""Interval of EdgeCredits, unless all is acknowledged: each costs both ends a wake-up."""
_WORDS_BYTES = 1 << 16
"""Control messages to send in one step."""


class Inlet:
    """Not thread-safe. `entries`: blocks that came or were named; `total`: how many there are, once that is known.

    `take` is given each. `reason`: why the way to the parent is lost.
    """

    def __init__(self, take: Callable[[TreeBlock | BlockHeld], None], timings: TreeTimings) -> None:
        self.entries = 0
        self.total: int | None = None
        self.reason = ""
        self._take = take
        self._timings = timings
        self._streams: list[EdgeStream] = []
        self._acknowledged = -1
        self._full = False
        self._sent_at = self._acknowledged_at = 0.0
        # Seconds without a message from the parent.
        self._silent = 0.0

    @property
    def complete(self) -> bool:
        """Return whether all blocks have arrived."""
        return self.total is not None and self.entries >= self.total

    @property
    def carried(self) -> int:
        """Return the bytes in both directions, over the present streams."""
        return sum(stream.carried for stream in self._streams)

    def accept(self, stream: EdgeStream, number: int, held: tuple[Range, ...], now: float) -> None:
        """Accept a stream from the parent; answer the first one with the held blocks. Raise RemoteProtocolError."""
        if number != len(self._streams) or self.reason:
            raise RemoteProtocolError(f"stream {number} of a tree is opened as number {len(self._streams)}")
        self._streams.append(stream)
        self._silent, self._sent_at = 0.0, now
        if number == 0:
            self._send(Have(held), now)

    def watch(self, poll: select.poll, reads: bool) -> bool:
        """Register for `poll`, for input only if this host reads now.

        Return whether there is buffered input, which `poll` does not report.
        """
        for stream in self._streams:
            poll.register(stream.socket, (_IN if reads else 0) | (_OUT if stream.waiting else 0))
        return reads and any(stream.pending for stream in self._streams)

    def wait(self, now: float) -> float:
        """Return the seconds until it has something to do by itself."""
        if not self._streams:
            return self._timings.heartbeat
        return max(0.0, min(self._sent_at + self._timings.heartbeat - now, self._timings.silence - self._silent))

    def work(self, ready: dict[int, int], may_read: Callable[[], bool], until: float) -> None:
        """Read available data until that time, at least once."""
        try:
            for stream in self._streams:
                if ready.get(stream.socket.fileno(), 0) & ~_OUT or stream.pending:
                    self._read(stream, may_read, until)
        except RemoteError as error:
            self.lose(str(error))

    def acknowledge(self, taken: int, full: bool, now: float) -> float:
        """Acknowledge entries that are stored here and behind; return the seconds until the next call."""
        if not self._streams:
            return self._timings.heartbeat
        if taken != self._acknowledged or full != self._full:
            left = self._acknowledged_at + _TAKEN_SECONDS - now
            if left > 0 and taken < self.entries and full == self._full:
                return left
            self._acknowledged, self._full, self._acknowledged_at = taken, full, now
            self._send(EdgeCredit(taken, full), now)
        elif now >= self._sent_at + self._timings.heartbeat:
            self._send(TreeHeartbeat(), now)
        return self._timings.heartbeat

    def tick(self, passed: float) -> None:
        """Count `passed` seconds."""
        self._silent += passed
        # A host that has stopped reading cannot receive heartbeats.
        if self._full or self.complete:
            self._silent = 0.0
        elif self._streams and self._silent >= self._timings.silence:
            self.lose(f"no message for {self._timings.silence:g} s")

    def lose(self, reason: str) -> None:
        """Give the connection to the parent up."""
        self._close_streams()
        if not self.complete and not self.reason:
            self.reason = reason

    def close(self, reason: str) -> None:
        """Close the connection to the parent."""
        if self._streams:
            with suppress(RemoteError):
                self._streams[0].queue(TreeAbort(reason))
                self._streams[0].send(_WORDS_BYTES)
        self._close_streams()

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def _send(self, message: Message, now: float) -> None:
        self._sent_at = now
        try:
            self._streams[0].queue(message)
            self._streams[0].send(_WORDS_BYTES)
            if self._streams[0].waiting > _WORDS_BYTES:
                raise RemoteError("does not accept messages")
        except RemoteError as error:
            self.lose(str(error))

    def _read(self, stream: EdgeStream, may_read: Callable[[], bool], until: float) -> None:
        while may_read():
            before = stream.progress
            for message in stream.receive():
                self.receive(message)
            if stream.progress == before:
                return
            self._silent = 0.0
            if time.monotonic() >= until:
                return

    def receive_all(self, messages: Iterable[Message]) -> None:
        """Handle messages of the parent; it is lost if one is invalid, or if it leaves."""
        try:
            for message in messages:
                self.receive(message)
        except RemoteError as error:
            self.lose(str(error))

    def receive(self, message: Message) -> None:
        """Handle a message of the parent. Raise RemoteError."""
        match message:
            case TreeBlock() | BlockHeld():
                if self.complete:
                    raise RemoteProtocolError("a block after EdgeEnd")
                self.entries += 1
                self._take(message)
            case EdgeEnd(total) if self.total is None and total >= self.entries:
                self.total = total
            case TreeHeartbeat():
                pass
            case TreeAbort(reason):
                raise RemoteError(reason or "left the tree")
            case _:
                raise RemoteProtocolError(f"{type(message).__name__} from a parent")
