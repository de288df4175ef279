"""Switches for tests of the TL1 driver over loopback TCP: an emulated one, and a scripted one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from optical_switch.emulator.timing import Clock
from optical_switch.model import Circuit
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import Dialect
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.protocol.errors import SwitchError
from tl1_driver.protocol.messages import Response, Tl1Command
from tl1_driver.protocol.procedure import Pause, Procedure


class LightPaths:
    """A replacement of the real light paths that fails or delays on demand."""

    def __init__(self) -> None:
        self.lit: set[Circuit] = set()
        self.order: list[Circuit] = []
        self.calls = 0
        self.seconds = 0.0
        self.error: Exception | None = None

    async def apply(self, removed, added) -> None:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        if self.error:
            raise self.error
        self.lit = self.lit - set(removed) | set(added)
        self.order += added


@dataclass
class Lab:
    switch: EmulatedSwitch
    paths: LightPaths
    port: int
    client: Callable[..., SwitchClient]

    async def opened(self, *arguments, **settings) -> SwitchClient:
        client = self.client(*arguments, **settings)
        await client.open()
        return client


def loop_clock() -> Clock:
    """Return the time of the running loop, virtual or not."""
    return Clock(asyncio.get_running_loop().time, lambda seconds: asyncio.sleep(max(seconds, 0.0001)))


@contextlib.asynccontextmanager
async def emulated(spoken: Dialect, **options) -> AsyncIterator[Lab]:
    """Run a switch of 8 x 8 on an ephemeral port; close all clients of `Lab.client` at the end."""
    paths = LightPaths()
    options = {"connect_seconds": 0.0, "clock": loop_clock(), **options}
    switch = EmulatedSwitch(8, 8, apply=paths.apply, **options)
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    server = await switch.serve(sock)
    clients: list[SwitchClient] = []

    def client(dialect: Dialect = spoken, **settings) -> SwitchClient:
        clients.append(SwitchClient("127.0.0.1", port, dialect, **{"timeout": 0.5, **settings}))
        return clients[-1]

    try:
        yield Lab(switch, paths, port, client)
    finally:
        for made in clients:
            await made.close()
        switch.cut()
        server.close()
        await server.wait_closed()


@contextlib.asynccontextmanager
async def scripted(
    behave: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """Serve connections with the function `behave`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await behave(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


def drive(
    procedure: Procedure, answers: Sequence[Sequence[str] | SwitchError]
) -> tuple[object, list[Tl1Command | Pause]]:
    """Run `procedure` with these rows or errors as answers to its commands; return its result and its commands."""
    steps: list[Tl1Command | Pause] = []
    left = iter(answers)
    move = lambda: next(procedure)  # noqa: E731
    while True:
        try:
            step = move()
        except StopIteration as end:
            return end.value, steps
        steps.append(step)
        reply = None if isinstance(step, Pause) else next(left)
        if isinstance(reply, SwitchError):
            move = lambda reply=reply: procedure.throw(reply)  # noqa: E731
        else:
            response = None if reply is None else Response("sw1", "1", "COMPLD", tuple(reply))
            move = lambda response=response: procedure.send(response)  # noqa: E731
