"""A thread with an asyncio loop on which servers and sessions run, alone or several together."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TypeVar

from blast_base.endpoint import listen_on

T = TypeVar("T")


class LoopThread:
    """Begins with `start` or the first `run`, and ends with `end`. Safe to use from any other thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._posted: deque[Callable[[], None]] = deque()
        self._wakes = False

    @property
    def is_running(self) -> bool:
        """Return true while the loop runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Let the loop run, if it does not."""
        if not self._thread.is_alive():
            self._thread.start()

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Run `work` on the loop and return its result. Raises its exceptions."""
        self.start()
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def post(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the loop, in order; a loop that has ended has no use for it.

        A wake-up of the loop is a system call and a thread switch: callbacks that are posted before it wakes share one.
        """
        self._posted.append(callback)
        if not self._wakes:
            self._wakes = True
            try:
                self.loop.call_soon_threadsafe(self._call_posted)
            except RuntimeError:
                self._wakes = False
                self._posted.clear()

    def lend(self) -> LoopThread:
        """Return this thread for a user among several, none of which ends it."""
        return _Lent(self)

    def end(self) -> None:
        """Stop the loop and close it. Twice, or without a beginning, does nothing more."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
        elif not self.loop.is_closed():
            self.loop.close()

    def _call_posted(self) -> None:
        # Cleared first: a callback that is posted from here on needs another wake-up.
        self._wakes = False
        for _ in range(len(self._posted)):
            callback = self._posted.popleft()
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - as of the loop's own callbacks
                self.loop.call_exception_handler({"message": f"{callback!r} failed", "exception": error})

    def _run(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


class _Lent(LoopThread):
    """Shares all the state of another, which ends it."""

    def __init__(self, owner: LoopThread) -> None:
        self.__dict__ = owner.__dict__

    def end(self) -> None:
        """Do nothing: others use the loop."""


async def listening_socket(host: str, port: int, backlog: int = 128) -> socket.socket:
    """Return a socket that listens there (`port` 0: at a free one). Raises OSError when the address cannot be had."""
    loop = asyncio.get_running_loop()
    address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][4]
    return listen_on(str(address[0]), int(address[1]), backlog)


def address_of(listening: socket.socket) -> tuple[str, int]:
    """Return host and port of a listening socket."""
    host, port = listening.getsockname()[:2]
    return str(host), int(port)
