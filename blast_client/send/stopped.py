"""Interruption of `blast send`: the state of the receivers, and how to resume."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from blast_transport.store.sources.source import AtEnd

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses that a shell reports for SIGINT and SIGTERM."""

T = TypeVar("T")


@dataclass(slots=True)
class TransferProgress:
    """The progress of a transfer; `whole`: the number of receivers that have all data, by set of receivers.

    `ended`: the data is a stream that ended before the interruption.
    """

    name: str
    resumable: bool
    whole: dict[tuple[str, ...], int] = field(default_factory=dict)
    ended: bool = False

    def note(self, receivers: Sequence[str], complete: int = 0) -> None:
        """Record how many of these receivers have all data."""
        self.whole[tuple(receivers)] = complete

    def have_it(self) -> list[str]:
        """Return the receivers that are known to have all data."""
        return [name for receivers, complete in self.whole.items() if complete == len(receivers) for name in receivers]

    def sentence(self) -> str:
        """Return a message on the state of the receivers and the next step."""
        if not self.whole:
            return "stopped before the transfer began"
        complete = sum(self.whole.values())
        have = "receiver has" if complete == 1 else "receivers have"
        some = f"{complete} {have} all data; " if complete else ""
        if self.resumable:
            return (
                f"stopped; {some}run the same command to resume: receivers keep partial data of {self.name} for a day"
            )
        if self.ended:
            return f"stopped after the end of {self.name}: {some}the others have all of it or nothing"
        return (
            f"stopped; {some}{self.name} cannot be resumed, and the other receivers keep nothing of it: send it again"
        )


def unless_stopped(so_far: TransferProgress) -> AtEnd:
    """Return a function for `StreamSource.at_end`, which accepts the end unless the current task was cancelled before.

    Ctrl-C ends all commands of a pipe, so that the output of the previous command is incomplete. Another thread may see
    the end of the stream before the main thread handles the signal; the main thread therefore decides.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def judge(end: Callable[[], None]) -> None:
        if not task.cancelling():
            so_far.ended = True
            end()

    def ask(end: Callable[[], None]) -> None:
        # Raised if the loop is closed: the transfer has ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(judge, end)

    return ask


async def cancelled_by_sigterm(work: Awaitable[T]) -> T:
    """Await `work`; SIGTERM cancels the task, as SIGINT does in asyncio.run, so that it aborts its sessions."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel(_number: int, _frame: FrameType | None) -> None:
        task.cancel()
        # Wake the loop.
        loop.call_soon_threadsafe(lambda: None)

    # Only the main thread handles signals. A handler of the loop would run only in a later iteration.
    if threading.current_thread() is not threading.main_thread():
        return await work
    before = signal.signal(signal.SIGTERM, cancel)
    try:
        return await work
    finally:
        signal.signal(signal.SIGTERM, before)
