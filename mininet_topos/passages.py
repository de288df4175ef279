"""TCP connections handed on byte for byte from one network namespace into another, so that TLS reaches from end to end.

A passage can be cut: then nothing passes, and nobody is told, as when a cable is pulled.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from mininet_topos.namespace import open_socket, run_in_network_of

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_BYTES = 1 << 16
_BACKLOG = 64


class Gate:
    """Lets pass, or holds what comes. Shut and opened from any thread."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_open(self) -> bool:
        """Whether it lets pass."""
        return self._open.is_set()

    def serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """It is asked on this loop."""
        self._loop = loop

    def shut(self) -> None:
        """Hold everything from now on."""
        self._do(self._open.clear)

    def open(self) -> None:
        """Let everything pass again, first of all what was held."""
        self._do(self._open.set)

    async def passed(self) -> None:
        """Return when it lets pass."""
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
class Passage:
    """Who comes in at `listening` is handed on to where `connect` leads, as far as the gate lets pass."""

    listening: socket.socket
    connect: Callable[[], Awaitable[Streams]]
    gate: Gate = field(default_factory=Gate)


class Passages:
    """Serves passages while the `with` block runs, on a thread of its own."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._ready, self._ending = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve_all()), name="passages", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Passages:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _serve_all(self) -> None:
        self._loop = asyncio.get_running_loop()
        servers = []
        for passage in self._passages:
            passage.gate.serve(self._loop)
            servers.append(await asyncio.start_server(partial(_serve, passage), sock=passage.listening))
        self._ready.set()
        await self._ending.wait()
        for server in servers:
            server.close()
        under_way = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _serve(passage: Passage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    ways = [writer]
    # The end of the passages cancels what they have under way, which is nobody's fault.
    with suppress(asyncio.CancelledError, OSError):
        try:
            await passage.gate.passed()
            far_reader, far_writer = await passage.connect()
            ways.append(far_writer)
            await asyncio.gather(_copy(reader, far_writer, passage.gate), _copy(far_reader, writer, passage.gate))
        finally:
            for way in ways:
                way.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate) -> None:
    with suppress(OSError):
        while data := await reader.read(_BYTES):
            await gate.passed()
            writer.write(data)
            await writer.drain()
        await gate.passed()
        # The other way may still have something to say.
        writer.write_eof()


def here(host: str, port: int) -> Callable[[], Awaitable[Streams]]:
    """Leads to an address in this process's namespace."""
    return partial(asyncio.open_connection, host, port)


def within(pid: int, host: str, port: int) -> Callable[[], Awaitable[Streams]]:
    """Leads to an address in the network namespace of a process."""

    async def connect() -> Streams:
        # A moment's work, which must not be left half done by whoever cancels.
        far = open_socket(pid, socket.AF_INET, socket.SOCK_STREAM)
        far.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(far, (host, port))
        except BaseException:
            far.close()
            raise
        return await asyncio.open_connection(sock=far)

    return connect


def listening_here(host: str, port: int) -> socket.socket:
    """Listens at an address in this process's namespace. Raises OSError."""
    listening = socket.create_server((host, port), backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


def listening_within(pid: int, host: str, port: int) -> socket.socket:
    """Listens at an address in the network namespace of a process. Raises OSError, HostError."""
    return run_in_network_of(pid, lambda: listening_here(host, port))
