"""The end of a measurement that sends: to all of its targets at once, as fast as they take it."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from blast_transport.base.errors import RemoteError, TransportError
from blast_transport.links.control_connection import FramedConnection
from blast_transport.links.dialling import Dialer
from blast_transport.measuring.loop import Loop
from blast_transport.measuring.timings import ANSWER_SECONDS, DIAL_SECONDS, drain_seconds
from blast_transport.wire.measuring import (
    Accepted,
    Measure,
    MeasuringDecoder,
    MeasuringMessage,
    Probe,
    Refused,
    SourceResult,
    encode_measuring,
)

_SMALLEST_PIECE, _LARGEST_PIECE = 1 << 14, 1 << 18
"""Bytes of one write: small ones arrive evenly, where they are slow; large ones cost little, where they are fast."""
_PIECE_SECONDS = 5e-4
_BUFFER_SECONDS = 1e-2
"""Time in which the accepted bytes may only have filled the socket's buffer."""
_MIN_PIECES = 64
_TCP_NOTSENT_LOWAT = 25
"""Linux' number; Python 3.11 has no name for it."""
_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

_Probing = FramedConnection[MeasuringMessage]


@dataclass(slots=True)
class _Stream:
    """Connection to a target, by the target's index; `waiting`: the sink has accepted."""

    target: int
    connection: _Probing
    waiting: bool = False


class MeasurementSource:
    """One measurement, as `measure` asks for it."""

    def __init__(self, measure: Measure, dialer: Dialer) -> None:
        self._measure = measure
        self._loop = Loop(dialer)
        self._streams: list[_Stream] = []
        self._missing = dict.fromkeys(range(len(measure.targets)), measure.streams)
        self._failed: dict[int, str] = {}
        # Nothing on the way can make it smaller.
        self._noise = memoryview(os.urandom(_LARGEST_PIECE))
        self._piece = _SMALLEST_PIECE
        self._bytes = 0
        self._began = 0.0
        self._left = ""

    def stop(self) -> None:
        """End soon. Any thread."""
        self._left = "the agent is ending"
        self._loop.wake()

    def run(self, commander: socket.socket | None = None) -> SourceResult:
        """Send to the end. Raises RemoteError if `commander` closes its connection meanwhile, or after `stop`."""
        try:
            if commander is not None:
                self._loop.watch(commander, selectors.EVENT_READ, self._lose_commander)
            self._connect()
            self._send()
            self._drain()
        finally:
            self._loop.close()
            for stream in self._streams:
                stream.connection.close()
        if self._left:
            raise RemoteError(self._left)
        names = [name for name, _, _ in self._measure.targets]
        return SourceResult(self._bytes, tuple((names[target], reason) for target, reason in self._failed.items()))

    def _step_until(self, done: Callable[[], bool], deadline: float) -> None:
        while not self._left and not done() and time.monotonic() < deadline:
            self._loop.step(deadline)

    def _lose_commander(self) -> None:
        self._left = "the commander has gone"

    # --------------------------------------------------------------------------------------------- connecting

    def _connect(self) -> None:
        for target, address in enumerate(self._measure.targets):
            for _ in range(self._measure.streams):
                self._loop.dial(
                    address,
                    DIAL_SECONDS,
                    partial(self._connected, target),
                    partial(self._fail, target),
                )
        self._step_until(lambda: not self._missing, time.monotonic() + DIAL_SECONDS + ANSWER_SECONDS)
        for target in list(self._missing):
            self._fail(target, f"no answer within {ANSWER_SECONDS:g} s")

    def _connected(self, target: int, sock: socket.socket) -> None:
        if target in self._failed:
            sock.close()
            return
        stream = _Stream(target, FramedConnection(sock, MeasuringDecoder(), encode_measuring))
        self._streams.append(stream)
        try:
            stream.connection.send(Probe(self._measure.token))
            stream.connection.flush()
        except RemoteError as error:
            self._fail(target, str(error))
            return
        self._loop.watch(sock, selectors.EVENT_READ, partial(self._read, stream))

    def _read(self, stream: _Stream) -> None:
        try:
            answers = stream.connection.receive()
        except TransportError as error:
            self._fail(stream.target, str(error))
            return
        for answer in answers:
            if isinstance(answer, Accepted) and not stream.waiting:
                stream.waiting = True
                self._one_less_missing(stream.target)
                self._loop.forget(stream.connection.socket)
            else:
                reason = answer.reason if isinstance(answer, Refused) else "an answer that makes no sense"
                self._fail(stream.target, reason)
                return

    def _one_less_missing(self, target: int) -> None:
        self._missing[target] -= 1
        if not self._missing[target]:
            del self._missing[target]

    def _fail(self, target: int, reason: str) -> None:
        """Fail a target that has lost one of its streams."""
        self._failed.setdefault(target, reason)
        self._missing.pop(target, None)
        for stream in [stream for stream in self._streams if stream.target == target]:
            self._streams.remove(stream)
            self._loop.forget(stream.connection.socket)
            stream.connection.close()

    # ------------------------------------------------------------------------------------------------ sending

    def _send(self) -> None:
        self._began = time.monotonic()
        for stream in self._streams:
            sock = stream.connection.socket
            # Unsent data in the socket would only delay the end.
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, 2 * _SMALLEST_PIECE)
            self._loop.watch(sock, selectors.EVENT_WRITE, partial(self._send_some, stream))
        self._step_until(self._all_sent, self._began + self._measure.max_seconds)

    def _all_sent(self) -> bool:
        return not self._streams or self._bytes + self._piece > self._measure.max_bytes

    def _send_some(self, stream: _Stream) -> None:
        if self._all_sent():
            return
        try:
            self._bytes += stream.connection.socket.send(self._noise[: self._piece])
        except _AGAIN:
            return
        except OSError as error:
            self._fail(stream.target, f"the connection was lost: {error.strerror or error}")
        self._enlarge_piece()

    def _enlarge_piece(self) -> None:
        """Enlarge the pieces; never shrink them, because TLS requires a retry with the same data."""
        rate = self._bytes / max(time.monotonic() - self._began, _BUFFER_SECONDS)
        largest = min(_LARGEST_PIECE, self._measure.max_bytes // _MIN_PIECES)
        self._piece = max(self._piece, min(int(rate * _PIECE_SECONDS), largest))

    def _drain(self) -> None:
        """Wait until the data in flight has arrived: the sinks then close."""
        for stream in self._streams:
            sock = stream.connection.socket
            with suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
            self._loop.watch(sock, selectors.EVENT_READ, partial(self._receive_end, stream))
        self._step_until(lambda: not self._streams, time.monotonic() + drain_seconds(self._measure.max_seconds))
        for target in {stream.target for stream in self._streams}:
            self._fail(target, "takes nothing any more")

    def _receive_end(self, stream: _Stream) -> None:
        try:
            if stream.connection.socket.recv(1):
                return
        except _AGAIN:
            return
        except OSError:
            # The sink closed with data unread, or is lost: it reports its result itself.
            pass
        self._streams.remove(stream)
        self._loop.forget(stream.connection.socket)
        stream.connection.close()
