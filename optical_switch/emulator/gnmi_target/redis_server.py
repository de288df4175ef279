"""A Redis server of its own for each emulated switch, on a Unix socket in the folder of the switch."""

from __future__ import annotations

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

SOCKET = "redis.sock"
LOG = "redis.log"
MAX_MEMORY = "256mb"
"""The factory's measurements of a switch of 320 by 320 ports take some 30 MB."""
MAX_SOCKET_PATH = 107
"""Bytes of the path of a Unix socket, without the final zero (unix(7))."""
START_SECONDS = 30.0
"""Until Redis answers: it takes some 20 ms, and a machine may be far slower. It only keeps a start from hanging."""
POLL_SECONDS = 0.01
"""Between two attempts to connect while Redis starts."""


class RedisStartError(Exception):
    """Redis did not start."""


@asynccontextmanager
async def redis_server(folder: Path) -> AsyncIterator[Path]:
    """Run a Redis server with keyspace notifications; it loads what the last one in this folder has saved.

    Yields
    ------
    Path
        Its Unix socket.

    Raises
    ------
    RedisStartError
        If it is not installed or does not start.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise RedisStartError("redis-server is not installed: run apt-get install redis-server")
    path = folder / SOCKET
    if len(bytes(path)) > MAX_SOCKET_PATH:
        raise RedisStartError(f"{path} is too long for a Unix socket: use a folder with a shorter path")
    # It ends with this process, however that ends. In a session of its own, so that Ctrl-C in a terminal reaches only
    # the emulated switch, which then stops Redis.
    command = ("setpriv", "--pdeathsig", "KILL", program, "-")
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=DEVNULL, stderr=DEVNULL, cwd=folder, start_new_session=True
    )
    try:
        assert process.stdin is not None, "it is a pipe"
        process.stdin.write(_configuration(folder).encode())
        process.stdin.close()
        await _wait_until_ready(process, folder)
        yield path
    finally:
        await _stop(process, path)


def _configuration(folder: Path) -> str:
    """Return the configuration. Without save points Redis writes its file only when it is asked to."""
    lines = {
        "port": "0",
        "unixsocket": SOCKET,
        "unixsocketperm": "700",
        "logfile": LOG,
        "save": '""',
        # An operator at the socket can write anything, but not without end.
        "maxmemory": MAX_MEMORY,
        # Events of all commands by key, which SONiC's own subscribers use.
        "notify-keyspace-events": "KEA",
    }
    return "".join(f"{key} {value}\n" for key, value in lines.items())


async def _wait_until_ready(process: Process, folder: Path) -> None:
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _answers(folder / SOCKET):
                if process.returncode is not None:
                    raise RedisStartError(f"redis-server ended with status {process.returncode}: see {folder / LOG}")
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError as error:
        raise RedisStartError(f"redis-server does not answer after {START_SECONDS:g} s: see {folder / LOG}") from error


async def _answers(socket: Path) -> bool:
    """Return true if Redis answers, and not only that it still loads its file."""
    try:
        reader, writer = await asyncio.open_unix_connection(socket)
        try:
            writer.write(b"PING\r\n")
            return await reader.readline() == b"+PONG\r\n"
        finally:
            writer.close()
            await writer.wait_closed()
    except OSError:
        return False


async def _stop(process: Process, socket: Path) -> None:
    """End the process. Nothing is lost: Redis writes its file only in SAVE, which has returned by now."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    socket.unlink(missing_ok=True)
