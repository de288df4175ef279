"""Lines on a child's standard input, which are its orders; their end is the last one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator


async def orders() -> AsyncIterator[str]:
    """One order after the other, without the end of the line."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()
