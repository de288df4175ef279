"""Writing into a store that is fast most of the time: by one's own hand, and in a thread while it is slow."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NamedTuple

from blast_transport.base.errors import NoThreadError
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.store.blocks.store_writer import Piece, StoreWriter

_SLOW_SECONDS = 0.02
"""Exceeds the time for one write at some hundred Mbit/s."""
_IDLE_SHARE = 10
"""Ratio of elapsed to computing time above which a write waited: a preempted thread does not wait for a disk."""
_PREEMPTED_SHARE = 10
"""Multiple of the time of a slow write if the thread was preempted: it then waits for a processor, too."""
_CALM_WRITES = 256
"""Consecutive writes without a delay, after which the store counts as fast again."""


class _Usage(NamedTuple):
    """Resource usage of this thread: seconds of the clock and of the processor, voluntary waits, and preemptions."""

    clock: float
    processor: float
    waits: int
    preemptions: int

    @classmethod
    def now(cls) -> _Usage:
        """Return the usage until now."""
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        return cls(time.monotonic(), time.thread_time(), usage.ru_nvcsw, usage.ru_nivcsw)


def _is_slow(before: _Usage, after: _Usage) -> bool:
    """Return whether the store delayed the thread in between."""
    seconds, computed = after.clock - before.clock, after.processor - before.processor
    limit = _SLOW_SECONDS * (_PREEMPTED_SHARE if after.preemptions > before.preemptions else 1)
    return seconds > max(limit, _IDLE_SHARE * computed) and after.waits > before.waits


class EagerWriter(Generic[Piece]):
    """Writer that calls `write` with a block's number and its data, at once or in a thread, in order.

    It calls `wake` after writing a piece that was queued; `room` limits the queued bytes. `keep` converts a piece into
    one that may be queued.
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
        """Write the piece, or queue it. Raise StoreError."""
        if self._writer is not None and not self._is_calm(self._writer):
            self._writer.put(block, self._keep(row))
            return
        before = _Usage.now()
        self._write(block, row)
        if _is_slow(before, _Usage.now()):
            self.defer()

    @property
    def eager(self) -> bool:
        """Return whether pieces are written at once."""
        return self._writer is None

    def defer(self) -> None:
        """Write in a thread for a while, because the store was slow."""
        # Without another thread, this one continues.
        with suppress(NoThreadError):
            self._writer = StoreWriter(self._write, self._wake, self._room)
            self._calm = 0

    @property
    def ready(self) -> bool:
        """Return whether there is room for more. Raise StoreError."""
        return self._writer is None or self._writer.ready

    @property
    def drained(self) -> bool:
        """Return whether all pieces are written. Raise StoreError."""
        return self._writer is None or self._writer.drained

    @property
    def pace(self) -> StorePace:
        """Return the pace of the store. Raise StoreError."""
        return StorePace.KEEPS_UP if self._writer is None else self._writer.pace

    @property
    def writing(self) -> float:
        """Return the seconds for which the store has accepted nothing while pieces wait. Raise StoreError."""
        return 0.0 if self._writer is None else self._writer.writing

    def waiting(self) -> list[tuple[int, Piece]]:
        """Return the pieces that are not written, with their first blocks, in order. Raise StoreError."""
        return [] if self._writer is None else self._writer.waiting()

    def close(self) -> None:
        """End the thread, if any, and drop its queue."""
        if self._writer is not None:
            self._writer.close()

    def _is_calm(self, writer: StoreWriter[Piece]) -> bool:
        """Return whether the thread has become unnecessary, and was ended."""
        self._calm = self._calm + 1 if writer.drained else 0
        if self._calm < _CALM_WRITES:
            return False
        writer.close()
        self._writer = None
        return True
