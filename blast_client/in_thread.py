"""A blocking transfer from asyncio, in a thread that keeps neither a cancelled task nor the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from blast_transport.base.report import TransferResult
from blast_transport.session.route import Route

Carry = Callable[[Sequence[str], Route], TransferResult]
"""(receivers, route) -> the result, when each of these receivers has the data or has failed. Blocks."""

STOPPED = "the sender has stopped"

GOODBYE_SECONDS = 1.0
"""How long a transfer that is given up may take to tell its receivers so. Those that are gone are not waited for."""

T = TypeVar("T")


def in_thread(name: str, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
    """What `work` gives or raises. An executor's threads would be waited for at the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
            # Whoever was cancelled does not ask any more.
            future.exception()
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work(*arguments)
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is waited for
            error = raised
        # The loop is closed where nobody could wait for it.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


async def carried(carry: Carry, receivers: Sequence[str], route: Route) -> TransferResult:
    """Carry it by the route. Cancelled, it is given up, and the receivers hear so. Raises what `carry` raises."""
    carrying = in_thread("transfer", carry, receivers, route)
    try:
        return await asyncio.shield(carrying)
    except asyncio.CancelledError:
        await let_go(carrying, route)
        raise


async def let_go(carrying: asyncio.Future[TransferResult], route: Route) -> None:
    """Give a transfer up, if it has not ended, and let it say so to its receivers."""
    if not carrying.done():
        route.give_up(STOPPED)
        await asyncio.wait([carrying], timeout=GOODBYE_SECONDS)
