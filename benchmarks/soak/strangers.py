"""Strangers at the controller's Thrift port: no token, many connections, frames that never end or never should."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import struct
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress

from soak.pacing import ticks

FLOOD_PER_SECOND, FLOOD_OPEN, FLOOD_TLS_OF = 30, 2000, 3
FRAMES_PER_SECOND = 5
HELD_SECONDS = 30.0
FROM = ("127.0.0.66", "127.0.0.67", "127.0.0.68", "127.0.0.69")
"""A stranger is another machine than those that clients and ToRs run on."""
_FRAME_BYTES = 1 << 20
_SLOW_SECONDS = 0.2
_STUFFED_CALLS, _STUFFED_BYTES = 16, 250_000

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Strangers:
    """One hostile client without credentials at `address`; `tally` counts what it did and what came of it."""

    def __init__(self, address: tuple[str, int], tally: Counter[str]) -> None:
        self._address, self._tally = address, tally
        self._from = itertools.cycle(FROM)
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def flood(self) -> None:
        """Connect, say nothing, stay."""
        open_now = asyncio.Semaphore(FLOOD_OPEN)
        async with asyncio.TaskGroup() as tasks:
            count = itertools.count()
            async for _ in ticks(FLOOD_PER_SECOND):
                if open_now.locked():
                    self._tally["held back: as many open as it may have"] += 1
                    continue
                tls = self._tls if next(count) % FLOOD_TLS_OF == 0 else None
                tasks.create_task(self._within(open_now, self._visit(tls, _stay)))

    async def frames(self) -> None:
        """Connect, begin to speak, and never come to an end."""
        kinds = itertools.cycle((_half, _slow, _giant, _stuffed))
        async with asyncio.TaskGroup() as tasks:
            async for _ in ticks(FRAMES_PER_SECOND):
                tasks.create_task(self._visit(self._tls, next(kinds)))

    async def _within(self, places: asyncio.Semaphore, visit: Coroutine[None, None, None]) -> None:
        async with places:
            await visit

    async def _visit(
        self, tls: ssl.SSLContext | None, behave: Callable[[Streams], Coroutine[None, None, None]]
    ) -> None:
        self._tally["connections"] += 1
        try:
            async with asyncio.timeout(HELD_SECONDS):
                streams = await asyncio.open_connection(*self._address, ssl=tls, local_addr=(next(self._from), 0))
                try:
                    await behave(streams)
                    # Until the other side has had enough.
                    await streams[0].read()
                    self._tally["ended by the controller"] += 1
                finally:
                    streams[1].transport.abort()
        except TimeoutError:
            self._tally["held to the end"] += 1
        except (OSError, EOFError):
            self._tally["refused or reset"] += 1


async def _stay(_: Streams) -> None:
    return


async def _half(streams: Streams) -> None:
    writer = streams[1]
    writer.write(struct.pack("!i", _FRAME_BYTES) + bytes(_FRAME_BYTES - 1))
    await writer.drain()


async def _slow(streams: Streams) -> None:
    reader, writer = streams
    writer.write(struct.pack("!i", 1000))
    while not reader.at_eof():
        writer.write(b"\x80")
        await writer.drain()
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), _SLOW_SECONDS)


async def _giant(streams: Streams) -> None:
    streams[1].write(struct.pack("!i", 0x7FFFFFFF) + bytes(1 << 16))
    await streams[1].drain()


async def _stuffed(streams: Streams) -> None:
    """Whole calls of `login`, each with a token that is none, faster than they can be answered."""
    name, token = b"login", b"x" * _STUFFED_BYTES
    for sequence in range(_STUFFED_CALLS):
        head = struct.pack("!Ii", 0x80010001, len(name)) + name + struct.pack("!i", sequence)
        body = head + struct.pack("!bhi", 11, 1, len(token)) + token + b"\0"
        streams[1].write(struct.pack("!i", len(body)) + body)
        await streams[1].drain()
