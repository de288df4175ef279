"""The hosts' way to the controllers: in a machine room a management network, here a relay of TCP connections.

Controllers listen in the namespace where the lab was started; a host's own loopback gets a listener for each, which
hands on to it, byte for byte, so that TLS reaches from end to end.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from mininet_topos.lab import Lab

ADDRESS = ("127.0.0.1", 9090)
"""Of the first controller; those of the others follow."""
_BYTES = 1 << 16


def addresses_of(lab: Lab) -> str:
    """Where a host finds the lab's controllers, with commas between."""
    address, first = ADDRESS
    return ",".join(f"{address}:{first + number}" for number in range(lab.controllers.count(",") + 1))


class Relay:
    """Listens in `hosts` at `addresses_of(lab)` while the `with` block runs, on a thread of its own."""

    def __init__(self, lab: Lab, hosts: Sequence[str]) -> None:
        far = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in lab.controllers.split(","))]
        self._far = dict(enumerate(far, ADDRESS[1]))
        self._sockets = [(port, _listening(lab, name, port)) for name in hosts for port in self._far]
        self._ready, self._ending = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._relay()), name="relay", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Relay:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _relay(self) -> None:
        self._loop = asyncio.get_running_loop()
        servers = [
            await asyncio.start_server(partial(self._serve, self._far[port]), sock=listening)
            for port, listening in self._sockets
        ]
        self._ready.set()
        await self._ending.wait()
        for server in servers:
            server.close()

    async def _serve(self, far: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*far)
        except OSError:
            writer.close()
            return
        # The end of the relay cancels what it has under way, which is nobody's fault.
        with suppress(asyncio.CancelledError):
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


def _listening(lab: Lab, host: str, port: int) -> socket.socket:
    listening = lab.open_socket(host, socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((ADDRESS[0], port))
    listening.listen(64)
    listening.setblocking(False)
    return listening
