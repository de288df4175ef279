"""Relays TCP: `python -m tests.support.relay_program HOST:PORT=HOST:PORT …`, each to listen on and to go to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

SECONDS_TO_CONNECT = 5


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.close()


def relay(host: str, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.wait_for(asyncio.open_connection(host, port), SECONDS_TO_CONNECT)
        except (OSError, TimeoutError):
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    return connected


async def main(pairs: list[str]) -> None:
    servers = []
    for pair in pairs:
        listen, target = (side.rpartition(":") for side in pair.split("="))
        servers.append(await asyncio.start_server(relay(target[0], int(target[2])), listen[0], int(listen[2])))
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
