"""Peers for tests of `blast switch probe`: scripted ones, and relays to a Unix socket; and how they are probed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.discovery import DiscoveryTimes
from blast_controller.cli.switch.probe.probing import probe
from blast_controller.cli.switch.probe.report import SwitchReport
from blast_controller.cli.switch.probe.settings import SwitchTable, place_of, settings_table
from blast_controller.configuration.config import OpticalSwitchSection
from blast_controller.configuration.reading import parse

TIMES = DiscoveryTimes(silence=0.05, answer=30.0, total=60.0)
"""Only where silence is expected does the limit pass; the others keep a test from hanging."""
HOST = "127.0.0.1"
RACK = """
[[rack]]
name = "r1"
datapath = "0000000000000001"
optical_ports = [{ port = 1, optical_switch = "ocs1", input = 1, output = 1 }]
"""
needs_redis = pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server")
Behavior = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def probed(endpoint: Endpoint, *settings: str, driver: str | None = None) -> SwitchReport:
    """Probe a switch, with time for a slow machine."""
    table: SwitchTable = {"step_timeout_ms": 30_000, **settings_table(settings)}
    return await probe(endpoint, driver, table, TIMES)


def configured(report: SwitchReport) -> OpticalSwitchSection:
    """Return the table as the controller reads it."""
    [section] = parse(report.toml + RACK).optical_switch
    assert section.place == place_of(report.table)
    return section


@contextlib.asynccontextmanager
async def served(behave: Behavior, context: ssl.SSLContext | None = None) -> AsyncIterator[Endpoint]:
    """Serve each connection with a function."""
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await behave(reader, writer)
        finally:
            running.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield Endpoint(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


def greeting_with(text: bytes) -> Behavior:
    """Return a peer that sends a text first, and reads until the end."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await reader.read(-1)

    return behave


def relay_to(socket: Path) -> Behavior:
    """Return a peer that relays to a Unix socket."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(socket)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                while data := await source.read(1 << 16):
                    sink.write(data)

        tasks = [asyncio.create_task(copy(reader, inner_writer)), asyncio.create_task(copy(inner_reader, writer))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            inner_writer.transport.abort()

    return behave


def server_context(pair, client_ca: Path | None = None) -> ssl.SSLContext:
    """Return a context for a server without ALPN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
