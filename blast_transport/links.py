"""The sender's control connections: one per receiver, opened ahead of time, used by one transfer after the other."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

from blast_transport.connection import ControlConnection
from blast_transport.errors import RemoteError
from blast_transport.sender_core import SenderCore

Address = tuple[str, str, int]
"""(name, host, port) of a receiver's control address."""

_QUEUE_LOW_BYTES = 1 << 18
_SELECTOR_TICK_SECONDS = 0.001
_WAKES = 4096


class ControlLinks:
    """Connections to receivers by name. Not thread-safe."""

    def __init__(self, receivers: Sequence[Address]) -> None:
        self._receivers = receivers
        self._selector = selectors.DefaultSelector()
        self._open: dict[str, ControlConnection] = {}
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)

    def wake(self) -> None:
        """End the waiting of `exchange`, now or the next one; from any thread, also when all is over."""
        with suppress(OSError):
            self._wake_writer.send(b"\0")

    def connect(self, timeout: float) -> dict[str, str]:
        """Connect to every receiver that is not connected, all at once; what failed, name to reason."""
        self._drop_closed()
        failed: dict[str, str] = {}
        trying: dict[str, socket.socket] = {}
        for name, host, port in self._receivers:
            if name in self._open:
                continue
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                sock.connect((host, port))
            except BlockingIOError:
                pass
            except OSError as error:
                sock.close()
                failed[name] = f"cannot connect to {host}:{port}: {error.strerror}"
                continue
            trying[name] = sock
        failed |= self._await_connections(trying, timeout)
        return failed

    def exchange(self, core: SenderCore, descriptor: int, timeout: float) -> None:
        """Send what `core` wants sent, then wait up to `timeout` seconds for its receivers and hand over their words.

        `descriptor` is the file that repairs are taken from. Raises SourceChangedError if it became shorter.
        """
        self.drop_failed(core)
        filled = [name for name in self._open if self._fill(name, core, descriptor)]
        for name, message in core.outbox:
            if name in self._open:
                self._open[name].send(message)
        core.outbox.clear()
        for name in list(self._open):
            self._flush(name, core)
        if any(name in self._open and not self._open[name].wants_write for name in filled):
            timeout = 0
        for key, events in self._wait(timeout):
            if key.data is None:
                self._wake_reader.recv(_WAKES)
            else:
                self._serve(key.data, events, core)

    def drop_failed(self, core: SenderCore) -> None:
        """A failed receiver's connection carries no further transfer: what is still in it belongs to this one."""
        for name, peer in core.peers.items():
            if peer.reason and name in self._open:
                self._close(name)

    def close(self) -> None:
        """Close every connection, which ends the sessions that run over them."""
        for name in list(self._open):
            self._close(name)
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def abort(self) -> None:
        """Close every connection, ready to connect again."""
        for name in list(self._open):
            self._close(name)

    def _await_connections(self, trying: dict[str, socket.socket], timeout: float) -> dict[str, str]:
        failed = {}
        give_up = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for name, sock in trying.items():
                selector.register(sock, selectors.EVENT_WRITE, name)
            while trying and (left := give_up - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    sock = trying.pop(key.data)
                    selector.unregister(sock)
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if code:
                        sock.close()
                        failed[key.data] = f"cannot connect: {os.strerror(code)}"
                    else:
                        self._add(key.data, sock)
        for name, sock in trying.items():
            sock.close()
            failed[name] = f"cannot connect: no answer within {timeout:g} s"
        return failed

    def expedite(self, by_light: bool) -> None:
        """Let the connections go before other packets during a transfer by light, and not otherwise."""
        for connection in self._open.values():
            connection.expedite(by_light)

    def _add(self, name: str, sock: socket.socket) -> None:
        self._open[name] = ControlConnection(sock)
        self._selector.register(sock, selectors.EVENT_READ, name)

    def _fill(self, name: str, core: SenderCore, descriptor: int) -> bool:
        """Queue some repairs; True if there were any. Never many, so that all receivers get their turn."""
        connection, hello, filled = self._open[name], core.hello, False
        while connection.queued_bytes < _QUEUE_LOW_BYTES and (segment := core.take_repair(name)) is not None:
            piece = (descriptor, segment * hello.segment_size, hello.length(segment))
            connection.send_repair(hello.session, segment, piece)
            filled = True
        return filled

    def _flush(self, name: str, core: SenderCore) -> None:
        connection = self._open[name]
        if not connection.wants_write:
            return
        try:
            connection.flush()
        except RemoteError as error:
            self._lose(name, core, str(error))
            return
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_write else 0)
        if self._selector.get_key(connection.socket).events != interest:
            self._selector.modify(connection.socket, interest, name)

    def _serve(self, name: str, events: int, core: SenderCore) -> None:
        if not events & selectors.EVENT_READ:
            return
        try:
            for message in self._open[name].receive():
                core.receive(name, message, time.monotonic())
        except RemoteError as error:
            self._lose(name, core, str(error))

    def _wait(self, timeout: float) -> list[tuple[selectors.SelectorKey, int]]:
        # epoll counts in whole milliseconds and rounds up; pacing needs better, so the last one is slept.
        began = time.monotonic()
        events = self._selector.select(max(0.0, timeout - _SELECTOR_TICK_SECONDS))
        left = timeout - (time.monotonic() - began)
        if events or left <= 0:
            return events
        time.sleep(min(left, _SELECTOR_TICK_SECONDS))
        return self._selector.select(0)

    def _lose(self, name: str, core: SenderCore, reason: str) -> None:
        core.lose(name, reason)
        self._close(name)

    def _drop_closed(self) -> None:
        """Between transfers the receivers say nothing, so whatever can be read is an end of connection."""
        for key, _ in self._selector.select(0):
            if key.data is not None:
                self._close(key.data)

    def _close(self, name: str) -> None:
        connection = self._open.pop(name)
        self._selector.unregister(connection.socket)
        connection.close()
