"""Blocking transfers in threads, for asyncio; neither a cancelled task nor the end of the process waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from blast_transport.base.report import TransferResult
from blast_transport.session.route import Route

Carry = Callable[[Sequence[str], Route], TransferResult]
"""Function (receivers, route) that blocks until each receiver has the data or has failed, and returns the result."""

STOPPED = "the sender has stopped"

ABORT_SECONDS = 1.0
"""Time in which a transfer that is stopped sends Abort to its receivers; it does not wait for their answers."""

T = TypeVar("T")


def in_thread(name: str, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
    """Run a function in a daemon thread and return its future; the process would wait for an executor's threads."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
            # A cancelled task does not retrieve the exception, and asyncio would log it.
            future.exception()
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work(*arguments)
        except BaseException as raised:  # noqa: BLE001 - the future raises it
            error = raised
        # Raised if the loop is closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


async def carried(carry: Carry, receivers: Sequence[str], route: Route) -> TransferResult:
    """Run a transfer in a thread; cancellation stops it and aborts the sessions of its receivers."""
    carrying = in_thread("transfer", carry, receivers, route)
    try:
        return await asyncio.shield(carrying)
    except asyncio.CancelledError:
        await let_go(carrying, route)
        raise


async def let_go(carrying: asyncio.Future[TransferResult], route: Route) -> None:
    """Stop a transfer that has not ended, and let it send Abort to its receivers."""
    if not carrying.done():
        route.give_up(STOPPED)
        await asyncio.wait([carrying], timeout=ABORT_SECONDS)
