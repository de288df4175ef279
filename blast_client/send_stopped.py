"""What somebody hears who stops `blast send` in the middle: what is left at the receivers, and how to go on."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from blast_transport.store.source import AtEnd

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses, as a shell gives them to what SIGINT and SIGTERM end."""

T = TypeVar("T")


@dataclass(slots=True)
class SoFar:
    """How far a transfer of the data called `name` has come; `whole`: how many of these receivers have all of it.

    `ended`: it is a stream, and its end was there before anybody stopped it.
    """

    name: str
    resumable: bool
    whole: dict[tuple[str, ...], int] = field(default_factory=dict)
    ended: bool = False

    def note(self, receivers: Sequence[str], complete: int = 0) -> None:
        """So many of these have all of it."""
        self.whole[tuple(receivers)] = complete

    def have_it(self) -> list[str]:
        """Receivers of which it is known that they have all of it."""
        return [name for receivers, complete in self.whole.items() if complete == len(receivers) for name in receivers]

    def sentence(self) -> str:
        """What is so now, and what to do next."""
        if not self.whole:
            return "stopped before anything was sent"
        complete = sum(self.whole.values())
        some = f"{complete} of the receivers have all of it; " if complete else ""
        if self.resumable:
            return (
                f"stopped; {some}the same command goes on from here: receivers keep what they have of {self.name}"
                " for a day"
            )
        if self.ended:
            return f"stopped after the end of {self.name}: {some}others may have it, or nothing of it"
        return f"stopped; {some}what cannot be sent twice cannot be gone on with: nothing else is kept of {self.name}"


def unless_stopped(so_far: SoFar) -> AtEnd:
    """For `StreamSource.at_end`: the end is one unless the running task has been cancelled before it. Any thread.

    Ctrl-C ends all commands of a pipe, and what the one before us had written by then is not the whole. Its end is seen
    in another thread, perhaps sooner than the signal, which is the main thread's: so the main thread is asked.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def judge(end: Callable[[], None]) -> None:
        if not task.cancelling():
            so_far.ended = True
            end()

    def ask(end: Callable[[], None]) -> None:
        # A loop that is closed has been left, by whatever: nobody waits for the end.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(judge, end)

    return ask


async def cancelled_by_sigterm(work: Awaitable[T]) -> T:
    """What `work` gives. SIGTERM cancels the task, as asyncio.run makes SIGINT do, so that it parts in good order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel(_number: int, _frame: FrameType | None) -> None:
        task.cancel()
        # A loop that waits has to look.
        loop.call_soon_threadsafe(lambda: None)

    # Signals are the main thread's. A handler of the loop's own would be called in a later turn of it.
    if threading.current_thread() is not threading.main_thread():
        return await work
    before = signal.signal(signal.SIGTERM, cancel)
    try:
        return await work
    finally:
        signal.signal(signal.SIGTERM, before)
