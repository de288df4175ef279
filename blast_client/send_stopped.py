"""What somebody hears who stops `blast send` in the middle: what is left at the receivers, and how to go on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses, as a shell gives them to what SIGINT and SIGTERM end."""

T = TypeVar("T")


@dataclass(slots=True)
class SoFar:
    """How far a transfer of the data called `name` has come; `whole`: how many of these receivers have all of it."""

    name: str
    resumable: bool
    whole: dict[tuple[str, ...], int] = field(default_factory=dict)

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
        return f"stopped; {some}what cannot be sent twice cannot be gone on with: nothing else is kept of {self.name}"


async def cancelled_by_sigterm(work: Awaitable[T]) -> T:
    """What `work` gives. SIGTERM cancels the task, as asyncio.run makes SIGINT do, so that it parts in good order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    # Signals are the main thread's.
    with suppress(ValueError, RuntimeError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
