"""Lets other threads wake the one that polls."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

_WAKES = 4096
"""At once: a wake-up is one byte, and several are read together."""


class Waker:
    """Lets other threads end a wait and hand over what is to be done in the waiting thread."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._actions: deque[Callable[[], None]] = deque()
        self._closing = threading.Lock()
        self._closed = False

    def fileno(self) -> int:
        """Return the descriptor that is readable when an action waits."""
        return self._reader.fileno()

    def wake(self) -> None:
        """End the wait, now or the next one; from any thread, also when all is over."""
        with suppress(OSError):
            self._writer.send(b"\0")

    def post(self, action: Callable[[], None]) -> None:
        """Have the waiting thread execute the action, or execute it now if that thread has ended. Thread-safe."""
        with self._closing:
            closed = self._closed
            if not closed:
                self._actions.append(action)
        if closed:
            action()
        else:
            self.wake()

    def run(self) -> None:
        """Do what was posted."""
        with suppress(BlockingIOError):
            self._reader.recv(_WAKES)
        while self._actions:
            self._actions.popleft()()

    def close(self) -> None:
        """Close it; everything that was posted is executed."""
        with self._closing:
            self._closed = True
        while self._actions:
            self._actions.popleft()()
        self._reader.close()
        self._writer.close()
