"""Writing into a store that is fast most of the time: by one's own hand, and in a thread while it is slow."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NamedTuple

from blast_transport.base.errors import NoThreadError
from blast_transport.store.store_pace import StorePace
from blast_transport.store.store_writer import Piece, StoreWriter

_SLOW_SECONDS = 0.02
"""What comes on a link of some hundred Mbit/s meanwhile is more than what is written in one go."""
_IDLE_SHARE = 10
"""So many times as long as it computes: a thread that others keep from the processor does not wait for a disk."""
_CALM_WRITES = 256
"""So many times in a row nothing waited: the store is as fast again as it was before its pause."""


class _Usage(NamedTuple):
    """What this thread has used: seconds of the clock and of the processor, and how often it waited of its own."""

    clock: float
    processor: float
    waits: int

    @classmethod
    def now(cls) -> _Usage:
        """Until now."""
        return cls(time.monotonic(), time.thread_time(), resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)


def _is_slow(before: _Usage, after: _Usage) -> bool:
    """Whether the store has made us wait in between."""
    seconds, computed = after.clock - before.clock, after.processor - before.processor
    return seconds > max(_SLOW_SECONDS, _IDLE_SHARE * computed) and after.waits > before.waits


class EagerWriter(Generic[Piece]):
    """Calls `write` with a block's number and what begins with it, at once or in a thread, in order.

    `wake` is called when something that waited is written; there is `room` for so many bytes that wait. `keep` makes
    of a piece one that may wait.
    """

    def __init__(
        self,
        write: Callable[[int, Piece], object],
        wake: Callable[[], None],
        room: int,
        keep: Callable[[Piece], Piece] = lambda piece: piece,
    ) -> None:
        self._write, self._wake, self._room, self._keep = write, wake, room, keep
        # None as long as the store is fast: the thread and the copy for it cost more than a write does.
        self._writer: StoreWriter[Piece] | None = None
        self._calm = 0

    def put(self, block: int, row: Piece) -> None:
        """Write it, or let it wait. Raises StoreError."""
        if self._writer is not None and not self._is_calm(self._writer):
            self._writer.put(block, self._keep(row))
            return
        before = _Usage.now()
        self._write(block, row)
        if _is_slow(before, _Usage.now()):
            self.defer()

    @property
    def eager(self) -> bool:
        """What is put is written at once."""
        return self._writer is None

    def defer(self) -> None:
        """The store has made us wait: let a thread write for a while."""
        # Where there are no more threads, this one goes on.
        with suppress(NoThreadError):
            self._writer = StoreWriter(self._write, self._wake, self._room)
            self._calm = 0

    @property
    def ready(self) -> bool:
        """There is room for more. Raises StoreError."""
        return self._writer is None or self._writer.ready

    @property
    def drained(self) -> bool:
        """All that was put is written. Raises StoreError."""
        return self._writer is None or self._writer.drained

    @property
    def pace(self) -> StorePace:
        """How the store does. Raises StoreError."""
        return StorePace.KEEPS_UP if self._writer is None else self._writer.pace

    @property
    def writing(self) -> float:
        """For so many seconds the store has taken nothing, though something waits for it. Raises StoreError."""
        return 0.0 if self._writer is None else self._writer.writing

    def waiting(self) -> list[tuple[int, Piece]]:
        """What is not written, with its first block, in order. Raises StoreError."""
        return [] if self._writer is None else self._writer.waiting()

    def close(self) -> None:
        """End the thread, if there is one; what it has not written is dropped."""
        if self._writer is not None:
            self._writer.close()

    def _is_calm(self, writer: StoreWriter[Piece]) -> bool:
        """Its thread is of no more use, and ended."""
        self._calm = self._calm + 1 if writer.drained else 0
        if self._calm < _CALM_WRITES:
            return False
        writer.close()
        self._writer = None
        return True
