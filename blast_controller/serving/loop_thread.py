"""A thread with an asyncio loop of its own, on which a server serves: whatever happens there, others go on."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine
from typing import TypeVar

from blast_transport.base.endpoint import listen_on

T = TypeVar("T")


class LoopThread:
    """Begins with the first `run`, and ends with `end`. Safe to use from any other thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def turns(self) -> bool:
        """Return true while the loop runs."""
        return self._thread.is_alive()

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Run `work` on the loop and return its result. Raises its exceptions."""
        if not self._thread.is_alive():
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def end(self) -> None:
        """Stop the loop and close it. Twice, or without a beginning, does nothing more."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
        elif not self.loop.is_closed():
            self.loop.close()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


async def listening_socket(host: str, port: int, backlog: int = 128) -> socket.socket:
    """Return a socket that listens there (`port` 0: at a free one). Raises OSError when the address cannot be had."""
    loop = asyncio.get_running_loop()
    address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][4]
    return listen_on(str(address[0]), int(address[1]), backlog)


def address_of(listening: socket.socket) -> tuple[str, int]:
    """Return host and port of a listening socket."""
    host, port = listening.getsockname()[:2]
    return str(host), int(port)
