"""The sender's control connections: one per receiver, opened side by side, used by one transfer after the other."""

from __future__ import annotations

import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from blast_transport.errors import RemoteError, TransportError, sentence
from blast_transport.session.connection import ControlConnection
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.messages import Hello, Message, Repair

Address = tuple[str, str, int]
"""(name, host, port) of a receiver's control address."""

Dialer = Callable[[Address, float], socket.socket]
"""(address, seconds) -> a connected socket, each side proven to the other. Raises OSError, TransportError."""

Image = Callable[[int], memoryview]
"""A block as it travels."""

_QUEUE_LOW_BYTES = 1 << 18
_SELECTOR_TICK_SECONDS = 0.001
_WAKES = 4096
_MOST_DIALS = 64
_RETRY_SECONDS = 1.0
_STRAGGLER_SECONDS = 0.5


def dial(address: Address, timeout: float) -> socket.socket:
    """Connect by plain TCP. Raises OSError."""
    return socket.create_connection(address[1:], timeout)


class ControlLinks:
    """Connections to receivers by name. Not thread-safe, but for `wake`."""

    def __init__(self, receivers: Sequence[Address], dialer: Dialer = dial) -> None:
        self._addresses = {address[0]: address for address in receivers}
        self._dialer = dialer
        self._selector = selectors.DefaultSelector()
        self._open: dict[str, ControlConnection] = {}
        self._dialling: set[str] = set()
        self._retry_at: dict[str, float] = {}
        self._dialled: queue.SimpleQueue[tuple[str, socket.socket | str]] = queue.SimpleQueue()
        self._slots = threading.Semaphore(_MOST_DIALS)
        self._closed = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)

    def wake(self) -> None:
        """End the waiting of `exchange`, now or the next one; from any thread, also when all is over."""
        with suppress(OSError):
            self._wake_writer.send(b"\0")

    @property
    def open(self) -> frozenset[str]:
        """Who is connected."""
        return frozenset(self._open)

    def own_address(self) -> str:
        """Our address on the packet network, as the receivers see it; empty if nobody is connected."""
        for connection in self._open.values():
            return str(connection.socket.getsockname()[0])
        return ""

    def chain(self, names: Sequence[str], listener: socket.socket) -> tuple[Address, ...]:
        """The nodes of a pipeline through these receivers: first we, who accept connections at `listener`."""
        return (("", *listener.getsockname()[:2]), *(self._addresses[name] for name in names))

    def connect(self, timeout: float) -> dict[str, str]:
        """Connect to every receiver that is not connected; what failed, name to reason.

        Who does not answer holds the others up for a moment only; the connection may still come about in `redial`.
        """
        self._drop_closed()
        failed: dict[str, str] = {}
        give_up = time.monotonic() + timeout
        self._dial_all(timeout)
        while self._dialling and (left := give_up - time.monotonic()) > 0:
            try:
                name, outcome = self._dialled.get(timeout=left)
            except queue.Empty:
                break
            self._add(name, outcome, failed)
            if self._open:
                give_up = min(give_up, time.monotonic() + _STRAGGLER_SECONDS)
        return failed | dict.fromkeys(self._dialling, f"cannot connect: no answer within {timeout:g} s")

    def redial(self, core: SenderCore, timeout: float) -> None:
        """Try again, in the background, to reach receivers that are not there; hand over those that are again."""
        failed: dict[str, str] = {}
        while not self._dialled.empty():
            self._add(*self._dialled.get(), failed)
        now = time.monotonic()
        for name, reason in failed.items():
            self._retry_at[name] = now + _RETRY_SECONDS
            core.gone(name, reason, now)
        for name in self._open:
            core.connected(name, now)
        absent = [name for name, peer in core.peers.items() if not peer.over and name not in self._open]
        if any(now >= self._retry_at.get(name, 0.0) for name in absent):
            self._dial_all(timeout, {name for name in absent if now >= self._retry_at.get(name, 0.0)})

    def exchange(self, core: SenderCore, image: Image, timeout: float) -> None:
        """Send what `core` wants sent, then wait up to `timeout` seconds for its receivers and hand over their words.

        `image` gives a block for repairs. Raises what it raises.
        """
        filled = [name for name in list(self._open) if self._fill(name, core, image)]
        for name, message in core.outbox:
            if name in self._open:
                self._send(self._open[name], message)
        core.outbox.clear()
        for name in list(self._open):
            self._flush(name, core)
        self.drop_failed(core)
        if any(name in self._open and not self._open[name].wants_write for name in filled):
            timeout = 0
        for key, events in self._wait(timeout):
            if key.data is None:
                with suppress(BlockingIOError):
                    self._wake_reader.recv(_WAKES)
            else:
                self._serve(key.data, events, core)

    def drop_failed(self, core: SenderCore) -> None:
        """A failed receiver's connection carries no further transfer: what is still in it belongs to this one."""
        for name, peer in core.peers.items():
            if peer.over and peer.reason and name in self._open:
                self._close(name)

    def expedite(self, by_light: bool) -> None:
        """Let the connections go before other packets during a transfer by light, and not otherwise."""
        for connection in self._open.values():
            with suppress(OSError):
                connection.expedite(by_light)

    def abort(self) -> None:
        """Close every connection, which ends the sessions that run over them; ready to connect again."""
        for name in list(self._open):
            self._close(name)

    def close(self) -> None:
        """Close everything."""
        self._closed = True
        self.abort()
        while not self._dialled.empty():
            _, outcome = self._dialled.get()
            if not isinstance(outcome, str):
                outcome.close()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _dial_all(self, timeout: float, names: set[str] | None = None) -> None:
        for name in self._addresses if names is None else names:
            if name not in self._open and name not in self._dialling:
                self._dialling.add(name)
                arguments = (self._addresses[name], timeout)
                threading.Thread(target=self._dial, args=arguments, name=f"dial {name}", daemon=True).start()

    def _dial(self, address: Address, timeout: float) -> None:
        name, host, port = address
        outcome: socket.socket | str
        with self._slots:
            try:
                outcome = self._dialer(address, timeout)
            except TimeoutError:
                outcome = f"cannot connect to {host}:{port}: no answer within {timeout:g} s"
            except (OSError, TransportError) as error:
                outcome = f"cannot connect to {host}:{port}: {sentence(error)}"
        if self._closed and not isinstance(outcome, str):
            outcome.close()
            return
        self._dialled.put((name, outcome))
        self.wake()

    def _add(self, name: str, outcome: socket.socket | str, failed: dict[str, str]) -> None:
        self._dialling.discard(name)
        if isinstance(outcome, str):
            failed[name] = outcome
        else:
            self._open[name] = ControlConnection(outcome)
            self._selector.register(outcome, selectors.EVENT_READ, name)

    @staticmethod
    def _send(connection: ControlConnection, message: Message) -> None:
        if isinstance(message, Hello):
            message = replace(message, key=connection.hidden(message.session, message.key))
        connection.send(message)

    def _fill(self, name: str, core: SenderCore, image: Image) -> bool:
        """Queue some repairs; True if there were any. Never many, so that all receivers get their turn."""
        connection, layout, now, filled = self._open[name], core.layout, time.monotonic(), False
        while connection.queued_bytes < _QUEUE_LOW_BYTES and (repair := core.take_repair(name, now)) is not None:
            block, runs = repair
            data, size = image(block), layout.segment_size
            for first, count in runs:
                piece = bytes(data[first * size : (first + count) * size])
                if piece:
                    segment = block * layout.block_segments + first
                    connection.send(Repair(core.hello.session, segment, piece))
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
        if not events & selectors.EVENT_READ or name not in self._open:
            return
        try:
            messages = self._open[name].receive()
        except RemoteError as error:
            self._lose(name, core, str(error))
            return
        now = time.monotonic()
        for message in messages:
            core.receive(name, message, now)

    def _wait(self, timeout: float) -> list[tuple[selectors.SelectorKey, int]]:
        # epoll counts in whole milliseconds and rounds up; pacing needs better, so the last one is slept.
        if timeout <= 0:
            return self._selector.select(0)
        began = time.monotonic()
        events = self._selector.select(max(0.0, timeout - _SELECTOR_TICK_SECONDS))
        left = timeout - (time.monotonic() - began)
        if events or left <= 0:
            return events
        time.sleep(min(left, _SELECTOR_TICK_SECONDS))
        return self._selector.select(0)

    def _lose(self, name: str, core: SenderCore, reason: str) -> None:
        core.gone(name, reason, time.monotonic())
        self._retry_at[name] = time.monotonic() + _RETRY_SECONDS
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
