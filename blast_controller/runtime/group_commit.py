"""Group commit: one wait for the disk serves everything that arrived during the previous one.

At most one batch is being written; everything that is added meanwhile fills the next one. A batch has records and the
results that may leave once they are durable. Batches are released in order, and a batch without records waits for
those before it. A batch that could not be written becomes the beginning of the next one: its outcome may be unknown,
and the store then needs the same records again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blast_controller.core.model.records import Record
from blast_controller.core.snapshot.changes import NOTHING, Changes
from blast_controller.core.snapshot.snapshot import Snapshot

SECONDS_TO_CLOSE = 5.0
"""Seconds for the last commit; a disk that hangs must not delay the exit."""


@dataclass(slots=True)
class Batch:
    """Records, and what follows once they are durable.

    `results` are called in order; `snapshot` is the state then, which differs by `changes` from that of the previous
    batch.
    """

    records: list[Record] = field(default_factory=list)
    results: list[Callable[[], None]] = field(default_factory=list)
    snapshot: Snapshot | None = None
    changes: Changes = NOTHING

    def __bool__(self) -> bool:
        return bool(self.records or self.results) or self.changes != NOTHING

    def add(self, later: Batch) -> None:
        """Append a batch that is released together with this one."""
        self.records += later.records
        self.results += later.results
        self.snapshot = later.snapshot or self.snapshot
        self.changes |= later.changes


class GroupCommit:
    """Two batches: the one that fills, and the one that is being written, if any. Used by one thread.

    `write` writes records durably, on the calling thread or on one of its own; `ended` is called there after each
    write that was begun, to have it collected.
    """

    def __init__(self, write: Callable[[Sequence[Record]], None], ended: Callable[[], None]) -> None:
        self.filling = Batch()
        self._write = write
        self._ended = ended
        self._writing: Batch | None = None
        self._orders: queue.SimpleQueue[Sequence[Record] | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    @property
    def is_writing(self) -> bool:
        """Return true from `begin` until `collect`."""
        return self._writing is not None

    def take(self) -> Batch:
        """Write the batch that fills on this thread and return it. Raises what `write` raises; the batch then stays."""
        if self.filling.records:
            self._write(self.filling.records)
        written, self.filling = self.filling, Batch()
        return written

    def begin(self) -> None:
        """Begin to write the batch that fills on the other thread."""
        if not self._thread.is_alive():
            self._thread.start()
        self._writing, self.filling = self.filling, Batch()
        self._orders.put(self._writing.records)

    def collect(self) -> Batch:
        """Wait for the end of the write that was begun and return its batch.

        Raises what `write` raised; the batch is then the beginning of the one that fills.
        """
        if self._writing is None:
            raise AssertionError("no write was begun")
        fault = self._outcomes.get()
        written, self._writing = self._writing, None
        if fault is not None:
            written.add(self.filling)
            self.filling = written
            raise fault
        return written

    def close(self) -> None:
        """End the thread, which may still be writing."""
        if self._thread.is_alive():
            self._orders.put(None)
            # A write to a store that does not answer must not delay the end of the process.
            self._thread.join(SECONDS_TO_CLOSE)

    def _run(self) -> None:
        while (records := self._orders.get()) is not None:
            fault = None
            try:
                self._write(records)
            except BaseException as error:  # noqa: BLE001 - raised again by `collect`
                fault = error
            self._outcomes.put(fault)
            self._ended()
