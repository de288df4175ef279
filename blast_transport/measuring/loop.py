"""The loop of one thread: sockets that are watched, connections that are opened meanwhile, and a time limit."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from blast_transport.links.dialling import Address, Dialer, Dialling, dial

Act = Callable[[], None]
Connected = Callable[[socket.socket], None]
Unconnected = Callable[[str], None]

_WAKES = 4096
"""At once: a wake-up is one byte, and several are read together."""


class Loop:
    """Event loop that runs callbacks in the thread that calls `step`. `dialer` opens connections."""

    def __init__(self, dialer: Dialer = dial) -> None:
        self._selector = selectors.DefaultSelector()
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._acts: dict[socket.socket, Act] = {}
        self.watch(self._reader, selectors.EVENT_READ, self._woken)
        self._dialling: Dialling[int] = Dialling(dialer, self.wake)
        self._dials: list[tuple[Connected, Unconnected]] = []

    def dial(self, address: Address, seconds: float, connected: Connected, unconnected: Unconnected) -> None:
        """Open a connection; one of the two is called in a later turn."""
        self._dials.append((connected, unconnected))
        self._dialling.begin(len(self._dials) - 1, address, seconds)

    def watch(self, sock: socket.socket, events: int, act: Act) -> None:
        """Call `act` whenever the socket is ready for these events of `selectors`; replaces what was watched before."""
        if sock in self._acts:
            self._selector.modify(sock, events, sock)
        else:
            self._selector.register(sock, events, sock)
        self._acts[sock] = act

    def forget(self, sock: socket.socket) -> None:
        """Stop watching the socket; call this before closing it."""
        if self._acts.pop(sock, None) is not None:
            self._selector.unregister(sock)

    def wake(self) -> None:
        """End the present wait, or the next one. May be called from any thread."""
        with suppress(OSError):
            self._writer.send(b"\0")

    def step(self, deadline: float) -> None:
        """Wait until something is ready, or `deadline` (time.monotonic), and act on it."""
        for key, _ in self._selector.select(max(0.0, deadline - time.monotonic())):
            # An earlier callback of this iteration may have closed the socket.
            if (act := self._acts.get(key.data)) is not None:
                act()
        for number, outcome in self._dialling.take():
            connected, unconnected = self._dials[number]
            if isinstance(outcome, str):
                unconnected(outcome)
            else:
                connected(outcome)

    def close(self) -> None:
        """Cancel pending dials; owners close the sockets that were watched."""
        self._dialling.close()
        self._selector.close()
        self._reader.close()
        self._writer.close()

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            self._reader.recv(_WAKES)
