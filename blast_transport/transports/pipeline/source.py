"""First node of a pipeline: reads the data, serves its successor, and nodes that fetch dropped data."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable

from blast_transport.base.engines import PYTHON
from blast_transport.base.errors import ForgottenError, LocalError, RemoteError
from blast_transport.links.dialling import Dialer, dial
from blast_transport.store.sources.source import Source
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.outlets import (
    REPLAY_BYTES,
    Digested,
    StreamOutlet,
    open_digesting_outlet,
    open_outlet,
)
from blast_transport.transports.pipeline.connections.pump import Outlet
from blast_transport.transports.pipeline.protocol.core import SourceCore
from blast_transport.transports.pipeline.protocol.events import Command
from blast_transport.transports.pipeline.protocol.messages import Forget, Pget, PipelineHeartbeat
from blast_transport.transports.pipeline.protocol.phase import PipelineEvent, PipelinePhase
from blast_transport.transports.pipeline.protocol.skips import Skips
from blast_transport.transports.pipeline.runner import Runner
from blast_transport.transports.pipeline.successor import Successor

_PIECES_PER_STEP = 4
"""Pieces before other work is done, so that neither waits long."""


class PipelineSource(Runner):
    """Source of one phase. A block has `block_size` bytes: the phase begins, and may end, at a block.

    Data of a stream is released when the successor holds it and some more data has arrived, for retransmissions; a
    session that needs it for longer passes a source whose `release` waits for that. Call `wake` when a stream has more
    data. `engine` sends a file; Python sends a stream. The ranges in `skips` are omitted. `digested` is called with the
    digests of a file's blocks as they leave, if the engine computes them.
    """

    def __init__(  # noqa: PLR0913 - data, layout, transport and events
        self,
        phase: PipelinePhase,
        source: Source,
        block_size: int,
        events: Callable[[PipelineEvent], None],
        connect: Dialer = dial,
        *,
        engine: str = PYTHON,
        skips: Skips | None = None,
        digested: Digested | None = None,
    ) -> None:
        self._core = core = SourceCore(phase, phase.first_block * block_size, skips)
        super().__init__(phase, core, events, connect)
        self._source = source
        self._block_size = block_size
        self._descriptor = None if source.descriptor is None else os.dup(source.descriptor)
        fd = self._descriptor
        self._outlet: Outlet = StreamOutlet(source) if fd is None else open_outlet(engine, fd)
        outlet = self._outlet
        if digested is not None and fd is not None:
            # The other outlet stays for nodes that fetch: they get data that is digested already.
            assert source.size is not None
            outlet = open_digesting_outlet(engine, fd, source.size, block_size, digested)
        self._successor = Successor(phase, core.down, outlet, self._handle, self._connections)
        self._fetchers: list[_Fetcher] = []
        self._begun, self._sent = self._core.node.position, 0

    @property
    def begun(self) -> int:
        """Return the offset before which bytes have begun to leave, as of the last step."""
        return self._begun

    @property
    def sent(self) -> int:
        """Return the offset before which all bytes have left, or were left out, as of the last step."""
        return self._sent

    def accept(self, sock: socket.socket, name: str) -> None:
        """Take over the socket of the node `name`, which has sent Join to fetch data. May be called from any thread."""
        self._waker.post(lambda: self._joined(sock, name))

    def wake(self) -> None:
        """Notify it of more data or the end of the stream; from any thread."""
        self._waker.wake()

    def stop_at(self, block: int) -> None:
        """Drain: end the phase before `block`, or before the first one that has not begun.

        May be called from any thread. `Drained` has the end.
        """
        self._waker.post(lambda: self._stop_at(block))

    def quit(self, reason: str) -> None:
        """End for the user: all nodes quit, and the report still arrives. May be called from any thread."""
        self._waker.post(lambda: self._quit(reason))

    def _quit(self, reason: str) -> None:
        if self._ended is None:
            self._obey(self._core.interrupt(reason, time.monotonic()))

    def _joined(self, sock: socket.socket, name: str) -> None:
        known = self.phase.place(name) is not None
        if self._ended is not None or not known or len(self._fetchers) >= len(self.phase.chain):
            sock.close()
            return
        self._fetchers.append(_Fetcher(Link(sock), self._outlet, self._source, self.phase.timings.orphan))

    def _stop_at(self, block: int) -> None:
        if self._core.down.end_sent or self._ended is not None:
            return
        begun = -(-self._successor.promised // self._block_size)
        stop, size = max(block, begun) * self._block_size, self._source.size
        if size is None or stop < size:
            self._obey(self._core.end_at(stop, False, time.monotonic()))

    def _obey_one(self, command: Command) -> None:
        self._successor.obey(command)

    @property
    def _limit(self) -> int:
        stop = self._core.node.stop
        return self._source.available if stop is None else min(stop, self._source.available)

    def _watch(self, poll: select.poll) -> bool:
        self._successor.watch(poll, self._limit)
        pending = [fetcher.watch(poll) for fetcher in self._fetchers]
        return any(pending) or self._successor.pending

    def _waited(self, seconds: float) -> None:
        """Ignore the time: a source never starves."""

    def _work(self, ready: dict[int, int], now: float) -> None:
        self._see_source(now)
        self._successor.listen()
        self._successor.pour(self._limit)
        self._begun, self._sent = self._successor.promised, self._successor.sent
        self._fetchers = [fetcher for fetcher in self._fetchers if fetcher.work(now)]

    def _see_source(self, now: float) -> None:
        node, size = self._core.node, self._source.size
        if self._source.available != node.position:
            self._obey(self._core.readable(self._source.available, now))
        # A stream may end before where it was to be left.
        if size is not None and (node.stop is None or node.stop > size):
            self._obey(self._core.end_at(size, True, now))
        self._source.release(self._core.down.taken - (self.phase.buffer or REPLAY_BYTES))

    def _close(self) -> None:
        for fetcher in self._fetchers:
            fetcher.close()
        self._fetchers.clear()
        self._successor.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
        # It refers to this object, and holds its memory.
        del self._successor, self._outlet


class _Fetcher:
    """A node that fetches from the source."""

    def __init__(self, link: Link, outlet: Outlet, source: Source, timeout: float) -> None:
        self._source = source
        self._link = link
        self._outlet = outlet
        self._timeout = timeout
        self._moved = time.monotonic()
        self._offset = self._stop = 0
        link.send(PipelineHeartbeat(0, held_up=False))

    def watch(self, poll: select.poll) -> bool:
        """Register for `poll`; return true if something can be read that poll does not see."""
        pours = self._link.has_output or self._offset < self._stop
        poll.register(self._link.socket, select.POLLIN | (select.POLLOUT if pours else 0))
        return self._link.pending

    def work(self, now: float) -> bool:
        """Receive a request and send its data; return False when it is over."""
        try:
            message = self._link.receive()
            if isinstance(message, Pget) and message.stop <= self._source.available:
                self._offset, self._stop = message.offset, message.stop
            elif message is not None:
                raise RemoteError(f"{message} instead of a PGET for available data")
            self._pour(now)
        except (RemoteError, LocalError):
            self.close()
            return False
        if now - self._moved < self._timeout:
            return True
        self.close()
        return False

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def _pour(self, now: float) -> None:
        for _ in range(_PIECES_PER_STEP):
            try:
                sent = self._link.give(self._outlet, self._offset, self._stop)
            except ForgottenError as error:
                if self._link.promised:
                    raise
                self._link.send(Forget(error.first_held))
                self._stop = self._offset
                continue
            if sent == 0:
                return
            self._offset, self._moved = self._offset + sent, now
