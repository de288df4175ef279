"""Concurrent dialing, in a bounded number of threads, for a caller with an event loop."""

from __future__ import annotations

import queue
import socket
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from blast_base.endpoint import Endpoint
from blast_transport.base.errors import NoThreadError, TransportError, sentence
from blast_transport.base.precedence import BEST_EFFORT, open_connection, set_precedence
from blast_transport.base.threads import start_thread

Address = tuple[str, str, int]
"""(name, host, port) of a receiver's control address."""

SOURCE = ""
"""The name of a chain's source, which is no receiver, in its addresses."""

Dialer = Callable[[Address, float], socket.socket]
"""(address, seconds) -> a connected socket, each side proven to the other. Raises OSError, TransportError."""

Key = TypeVar("Key", bound=Hashable)

MAX_DIALS = 64
"""Connections that one who dials is opening at once; more of them wait for their turn."""


def dial(address: Address, timeout: float) -> socket.socket:
    """Connect by plain TCP. Raises OSError."""
    sock = open_connection(*address[1:], timeout)
    set_precedence(sock, BEST_EFFORT)
    return sock


class Dialling(Generic[Key]):
    """Opens connections; `wake` is called, in some thread, whenever one has succeeded or failed."""

    def __init__(self, dialer: Dialer, wake: Callable[[], None]) -> None:
        self._dialer, self._wake = dialer, wake
        self._under_way: set[Key] = set()
        self._outcomes: queue.SimpleQueue[tuple[Key, socket.socket | str]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Key, Address, float]] = deque()
        self._working = 0
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def __contains__(self, key: Key) -> bool:
        return key in self._under_way

    def begin(self, key: Key, address: Address, timeout: float) -> None:
        """Open a connection in the background, known by its `key`."""
        self._under_way.add(key)
        with self._lock:
            self._waiting.append((key, address, timeout))
            if self._working >= MAX_DIALS:
                return
            self._working += 1
        try:
            start_thread(f"dial {address[0]}", self._work)
        except NoThreadError as error:
            self._do_without_thread(str(error))

    def take(self) -> list[tuple[Key, socket.socket | str]]:
        """Return the outcomes since the last call: sockets, or sentences with the failure."""
        outcomes = []
        while not self._outcomes.empty():
            key, outcome = self._outcomes.get()
            self._under_way.discard(key)
            outcomes.append((key, outcome))
        return outcomes

    def close(self) -> None:
        """Keep nothing that still comes about."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
        for _, outcome in self.take():
            if not isinstance(outcome, str):
                outcome.close()

    def _do_without_thread(self, reason: str) -> None:
        """Leave the waiting dials to the other threads; without any thread they fail."""
        with self._lock:
            self._working -= 1
            failed = [] if self._working else list(self._waiting)
            for key, (_, host, port), _ in failed:
                self._waiting.popleft()
                self._outcomes.put((key, f"cannot connect to {Endpoint(host, port)}: {reason}"))
        if failed:
            self._wake()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._working -= 1
                    return
                order = self._waiting.popleft()
            self._dial(*order)

    def _dial(self, key: Key, address: Address, timeout: float) -> None:
        _, host, port = address
        outcome: socket.socket | str
        try:
            outcome = self._dialer(address, timeout)
        except TimeoutError:
            outcome = f"cannot connect to {Endpoint(host, port)}: no answer within {timeout:g} s"
        # A name that no host can have is a ValueError, of the resolver as well as of TLS.
        except (OSError, ValueError, TransportError) as error:
            outcome = f"cannot connect to {Endpoint(host, port)}: {sentence(error)}"
        if self._closed and not isinstance(outcome, str):
            outcome.close()
            return
        self._outcomes.put((key, outcome))
        self._wake()
