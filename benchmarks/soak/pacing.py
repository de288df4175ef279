"""A fixed rate: moments that are due, one after the other; who is late leaves out what it can no longer do in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

_MOST_BEHIND = 1.0


async def ticks(per_second: float) -> AsyncIterator[None]:
    """So many a second, for ever, from now on. Who was held up for more than a second does not catch up."""
    due = time.monotonic()
    while True:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        yield
        due = max(due + 1 / per_second, time.monotonic() - _MOST_BEHIND)
