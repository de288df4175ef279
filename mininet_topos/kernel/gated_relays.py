"""TCP connections relayed byte for byte from one network namespace into another, so that TLS is end to end.

A passage can be cut: then no data passes and no endpoint is notified, as with a pulled cable.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from mininet_topos.kernel.namespace import open_socket, run_in_network_of

_BYTES = 1 << 16
"""One read."""
_BACKLOG = 64
"""Clients that reconnect at once when the gate opens."""


class TrafficGate:
    """Lets pass, or holds what comes. Shut and opened from any thread."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_open(self) -> bool:
        """True if data passes."""
        return self._open.is_set()

    def serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the event loop on which `passed` is called."""
        self._loop = loop

    def shut(self) -> None:
        """Hold everything from now on."""
        self._do(self._open.clear)

    def open(self) -> None:
        """Let everything pass again, first of all what was held."""
        self._do(self._open.set)

    async def passed(self) -> None:
        """Wait until data may pass."""
        await self._open.wait()

    def _do(self, change: Callable[[], None]) -> None:
        if self._loop is None:
            change()
            return
        done = threading.Event()
        self._loop.call_soon_threadsafe(change)
        self._loop.call_soon_threadsafe(done.set)
        done.wait()


@dataclass(frozen=True)
class GatedRelay:
    """A relay from the socket `listening` to the address of `connect`, while the gate is open."""

    listening: socket.socket
    connect: Callable[[], Awaitable[socket.socket]]
    gate: TrafficGate = field(default_factory=TrafficGate)


class GatedRelays:
    """Serves passages while the `with` block runs, on a thread of its own."""

    def __init__(self, passages: Sequence[GatedRelay]) -> None:
        self._passages = passages
        self._ready, self._ending = threading.Event(), asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve_all()), name="passages", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> GatedRelays:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _serve_all(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        for passage in self._passages:
            passage.gate.serve(loop)
            loop.add_reader(passage.listening, self._let_in, passage)
        self._ready.set()
        await self._ending.wait()
        for passage in self._passages:
            loop.remove_reader(passage.listening)
            passage.listening.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _let_in(self, passage: GatedRelay) -> None:
        try:
            near, _ = passage.listening.accept()
        except OSError:
            # The client is gone, or descriptors are exhausted; waiting clients are accepted later.
            return
        near.setblocking(False)
        task = asyncio.create_task(_serve(passage, near))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        # Also where it was cancelled before its first turn.
        task.add_done_callback(lambda _: near.close())


async def _serve(passage: GatedRelay, near: socket.socket) -> None:
    try:
        await passage.gate.passed()
        with await passage.connect() as far:
            async with asyncio.TaskGroup() as fan_out:
                fan_out.create_task(_copy(near, far, passage.gate))
                fan_out.create_task(_copy(far, near, passage.gate))
    except* OSError:
        # If one end is gone, the other one is closed too.
        pass


async def _copy(source: socket.socket, target: socket.socket, gate: TrafficGate) -> None:
    loop = asyncio.get_running_loop()
    try:
        while data := await loop.sock_recv(source, _BYTES):
            await gate.passed()
            await loop.sock_sendall(target, data)
    except OSError:
        await gate.passed()
        raise
    await gate.passed()
    # The other direction may still have data.
    target.shutdown(socket.SHUT_WR)


def here(host: str, port: int) -> Callable[[], Awaitable[socket.socket]]:
    """Return a function that connects to an address in this process's namespace."""
    return lambda: _connected(socket.socket(), host, port)


def within(pid: int, host: str, port: int) -> Callable[[], Awaitable[socket.socket]]:
    """Return a function that connects to an address in the network namespace of a process."""
    return lambda: _connected(open_socket(pid, socket.AF_INET, socket.SOCK_STREAM), host, port)


async def _connected(far: socket.socket, host: str, port: int) -> socket.socket:
    far.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(far, (host, port))
    except BaseException:
        far.close()
        raise
    return far


def listening_here(host: str, port: int) -> socket.socket:
    """Listen at an address in this process's namespace and return the socket.

    Raises OSError.
    """
    listening = socket.create_server((host, port), backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


def listening_within(pid: int, host: str, port: int) -> socket.socket:
    """Listen at an address in the network namespace of a process and return the socket.

    Raises OSError, HostError.
    """
    return run_in_network_of(pid, lambda: listening_here(host, port))
