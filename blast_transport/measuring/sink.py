"""End of a measurement that receives data: it discards the bytes and reports their rate."""

from __future__ import annotations

import queue
import selectors
import socket
import ssl
import time
from contextlib import suppress
from functools import partial

from blast_transport.base.errors import RemoteError
from blast_transport.measuring.arrivals import Arrivals
from blast_transport.measuring.loop import Loop
from blast_transport.measuring.timings import ANSWER_SECONDS, JOIN_SECONDS, drain_seconds
from blast_transport.wire.measuring import Accepted, Measure, MeasurementResult, encode_measuring

_BUFFER_BYTES = 1 << 18
_MAX_AT_ONCE = 1 << 20
_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_MOMENT = 1e-5
"""Seconds; shorter times are not measurable."""


class Sink:
    """Sink of one measurement. `join` is called by any thread, `run` once."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._loop = Loop()
        self._joined: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
        self._streams: dict[socket.socket, int] = {}
        self._begun = 0
        self._accepted_at = self._latest = 0.0
        self._buffer = bytearray(_BUFFER_BYTES)
        self._arrivals = Arrivals()
        self._left = ""

    def join(self, sock: socket.socket) -> None:
        """Take over the connection of a probe."""
        self._joined.put(sock)
        self._loop.wake()

    def stop(self) -> None:
        """End soon. Any thread."""
        self._left = "the agent is ending"
        self._loop.wake()

    def run(self, commander: socket.socket) -> MeasurementResult:
        """Receive until all streams have ended, or time is over. Raise RemoteError if the commander disconnects."""
        begun_by = time.monotonic() + JOIN_SECONDS
        ended_by = begun_by + self._measure.max_seconds + drain_seconds(self._measure.max_seconds)
        self._loop.watch(commander, selectors.EVENT_READ, self._lose_commander)
        try:
            while not self._over(begun_by, ended_by):
                self._loop.step(ended_by if self._begun == self._measure.streams else begun_by)
                self._take_joined()
        finally:
            self._close()
        if self._left:
            raise RemoteError(self._left)
        rate = self._arrivals.rate() or self._rate_of_a_moment()
        return MeasurementResult(self._arrivals.bytes, self._arrivals.seconds, rate)

    def _rate_of_a_moment(self) -> float:
        """Return the rate of data that arrived at once: it was sent after Accepted at the earliest."""
        return 8 * self._arrivals.bytes / max(self._latest - self._accepted_at, _MOMENT)

    def _over(self, begun_by: float, ended_by: float) -> bool:
        now = time.monotonic()
        all_begun = self._begun == self._measure.streams or now >= begun_by
        return bool(self._left) or (all_begun and not self._streams) or now >= ended_by

    def _take_joined(self) -> None:
        while not self._joined.empty():
            sock = self._joined.get()
            if self._begun == self._measure.streams:
                sock.close()
                continue
            try:
                sock.settimeout(ANSWER_SECONDS)
                sock.sendall(encode_measuring(Accepted()))
                sock.setblocking(False)
            except OSError:
                sock.close()
                continue
            number = self._streams[sock] = self._begun
            self._begun += 1
            self._accepted_at = time.monotonic()
            self._loop.watch(sock, selectors.EVENT_READ, partial(self._receive, sock, number))

    def _receive(self, sock: socket.socket, number: int) -> None:
        total, ended = self._take(sock)
        if total:
            self._latest = time.monotonic()
            self._arrivals.add(number, total, self._latest)
        if ended or self._arrivals.bytes > self._measure.max_bytes:
            self._loop.forget(sock)
            del self._streams[sock]
            sock.close()

    def _take(self, sock: socket.socket) -> tuple[int, bool]:
        """Read the waiting bytes; return their number and whether the stream has ended.

        If the data fills the buffer, it arrived while this process did not run, and so did the data that follows.
        """
        total = 0
        try:
            while total < _MAX_AT_ONCE:
                count = sock.recv_into(self._buffer)
                total += count
                # TLS may hold what the selector cannot see.
                held = isinstance(sock, ssl.SSLSocket) and sock.pending() > 0
                if count < len(self._buffer) and not held:
                    return total, not count
        except _AGAIN:
            pass
        except OSError:
            return total, True
        return total, False

    def _lose_commander(self) -> None:
        self._left = "the commander has gone"

    def _close(self) -> None:
        self._loop.close()
        while not self._joined.empty():
            self._joined.get().close()
        for sock in self._streams:
            with suppress(OSError):
                sock.close()
