"""Thread that writes received data into a possibly slow store, so that the node does not wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from blast_transport.base.errors import LocalError, StoreError
from blast_transport.base.threads import start_thread
from blast_transport.store.blocks.store_pace import StorePace

Piece = TypeVar("Piece", bound=Sized)
"""Data from the beginning of a block, with a length."""

_JUDGED_SECONDS = 0.5
_JUDGED_WRITES = 2
_MIN_SHARE = 0.5
_CROWDED = 0.75
"""Share of the queue that must be used before a store counts as slow: until it is full, no transport waits."""
_CONCLUSIVE = 0.25
"""Share of the queue that must have arrived before it is full: after that, arrivals equal writes."""


@dataclass(slots=True)
class StoreGauge:
    """Measurement of a store's pace: pieces that arrive, into a queue of `room` bytes. Seconds and bytes."""

    room: int
    pieces: int = 0
    waiting: int = 0
    _begun: float = 0.0
    _seen: float = 0.0
    _slow: bool = False
    # Since the last evaluation; arrivals only while the queue had space.
    _since: float = 0.0
    _full_at: float | None = None
    _received: int = 0
    _written: int = 0
    _writes: int = 0
    _longest: float = 0.0

    def received(self, amount: int, now: float) -> None:
        """Record a piece that arrives."""
        if self.pieces == 0:
            self._begun, self._seen, self._slow = now, now, False
            self._restart(now)
        self.pieces += 1
        self.waiting += amount
        if self._full_at is None:
            self._received += amount
            self._full_at = now if self.waiting >= self.room else None

    def wrote(self, amount: int, now: float) -> None:
        """Record that the first piece is written."""
        self.pieces -= 1
        self.waiting -= amount
        self._written += amount
        self._writes += 1
        self._longest = max(self._longest, now - self._begun)
        self._begun = now

    def pace(self, now: float) -> StorePace:
        """Return the pace; call this several times a second."""
        if self.pieces <= 1:
            return StorePace.KEEPS_UP
        if now >= self._since + _JUDGED_SECONDS and self._writes >= _JUDGED_WRITES:
            self._judge(now)
        crowded = self.waiting >= _CROWDED * self.room
        return StorePace.SLOW if self._slow and crowded else StorePace.BEHIND

    def writing(self, now: float) -> float:
        """Return the seconds since the present write began; call this several times a second."""
        if now > self._seen + _JUDGED_SECONDS:
            # This process was stopped, and the write with it.
            self._begun += now - self._seen
        self._seen = now
        return max(0.0, now - self._begun) if self.pieces else 0.0

    def _judge(self, now: float) -> None:
        """Compare the write rate with the arrival rate before the queue was full.

        The write rate excludes the longest pause, which every disk has.
        """
        coming = (now if self._full_at is None else self._full_at) - self._since
        worked = now - self._since - max(self._longest, now - self._begun)
        known = self._full_at is None or self._received >= _CONCLUSIVE * self.room
        self._slow = known and self._written * coming < _MIN_SHARE * self._received * worked
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._since, self._received, self._written, self._writes, self._longest = now, 0, 0, 0, 0.0
        self._full_at = now if self.waiting >= self.room else None


class StoreWriter(Generic[Piece]):
    """Thread that calls `write` with a block's number and its data, in order, and then `wake`.

    `room`: bytes of its queue. Raises NoThreadError.
    """

    def __init__(self, write: Callable[[int, Piece], object], wake: Callable[[], None], room: int) -> None:
        self._write, self._wake = write, wake
        # The first piece is being written; a piece whose write failed stays.
        self._pieces: deque[tuple[int, Piece]] = deque()
        self._gauge = StoreGauge(room)
        self._failure: Exception | None = None
        self._closing = False
        self._changed = threading.Condition()
        start_thread("store writer", self._run)

    @property
    def ready(self) -> bool:
        """Return whether there is room for more. Raise StoreError if the store failed."""
        with self._changed:
            self._check()
            return self._gauge.waiting < self._gauge.room

    def put(self, block: int, piece: Piece) -> None:
        """Write it when the store takes it."""
        with self._changed:
            self._gauge.received(len(piece), time.monotonic())
            self._pieces.append((block, piece))
            self._changed.notify()

    @property
    def drained(self) -> bool:
        """Return whether everything is written. Raise StoreError."""
        with self._changed:
            self._check()
            return not self._pieces

    @property
    def pace(self) -> StorePace:
        """Return the pace of the store. Raise StoreError."""
        with self._changed:
            self._check()
            return self._gauge.pace(time.monotonic())

    @property
    def writing(self) -> float:
        """Return the seconds for which the store has accepted nothing while pieces wait. Raise StoreError."""
        with self._changed:
            self._check()
            return self._gauge.writing(time.monotonic())

    def waiting(self) -> list[tuple[int, Piece]]:
        """Return the pieces that are not written, with their first blocks, in order. Raise StoreError."""
        with self._changed:
            self._check()
            return list(self._pieces)

    def close(self) -> None:
        """End the thread, after the present write if there is one; drop the queue."""
        with self._changed:
            self._closing = True
            # A write may hang for long: free the queue before.
            while len(self._pieces) > 1:
                self._pieces.pop()
            self._changed.notify()

    def _check(self) -> None:
        if self._failure is not None:
            raise StoreError(str(self._failure)) from self._failure

    def _run(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._write(*found)
            except Exception as error:
                with self._changed:
                    self._failure = error
                self._wake()
                if isinstance(error, LocalError):
                    return
                raise
            with self._changed:
                _, piece = self._pieces.popleft()
                self._gauge.wrote(len(piece), time.monotonic())
            self._wake()

    def _next(self) -> tuple[int, Piece] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._closing)
            return None if self._closing else self._pieces[0]
