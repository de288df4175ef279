"""A thread that writes what came into a store that may make it wait, so that the node goes on meanwhile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from blast_transport.base.errors import LocalError, StoreError
from blast_transport.base.threads import start_thread
from blast_transport.store.store_pace import StorePace

Piece = TypeVar("Piece", bound=Sized)
"""What begins with a block, and has so many bytes."""

_JUDGED_SECONDS = 0.5
_JUDGED_WRITES = 2
_MIN_SHARE = 0.5
_CROWDED = 0.75
"""Share of the room that is taken before anybody calls a store slow: until it is full, nobody waits for it."""
_TELLING = 0.25
"""Share of the room that has to come before it is full: then no more can come than is written."""


@dataclass(slots=True)
class StoreGauge:
    """Whether a store takes what comes: pieces, one by one, for which there is `room`. Seconds and bytes."""

    room: int
    pieces: int = 0
    waiting: int = 0
    _begun: float = 0.0
    _seen: float = 0.0
    _slow: bool = False
    # Since the last judgment; what came, as long as there was room.
    _since: float = 0.0
    _full_at: float | None = None
    _came: int = 0
    _written: int = 0
    _writes: int = 0
    _longest: float = 0.0

    def came(self, amount: int, now: float) -> None:
        """One more."""
        if self.pieces == 0:
            self._begun, self._seen, self._slow = now, now, False
            self._anew(now)
        self.pieces += 1
        self.waiting += amount
        if self._full_at is None:
            self._came += amount
            self._full_at = now if self.waiting >= self.room else None

    def wrote(self, amount: int, now: float) -> None:
        """The first one is written."""
        self.pieces -= 1
        self.waiting -= amount
        self._written += amount
        self._writes += 1
        self._longest = max(self._longest, now - self._begun)
        self._begun = now

    def pace(self, now: float) -> StorePace:
        """As it looks now: call it some times a second."""
        if self.pieces <= 1:
            return StorePace.KEEPS_UP
        if now >= self._since + _JUDGED_SECONDS and self._writes >= _JUDGED_WRITES:
            self._judge(now)
        crowded = self.waiting >= _CROWDED * self.room
        return StorePace.SLOW if self._slow and crowded else StorePace.BEHIND

    def writing(self, now: float) -> float:
        """For so long it has been at the piece that it writes: call it some times a second."""
        if now > self._seen + _JUDGED_SECONDS:
            # We were stopped ourselves, and it with us.
            self._begun += now - self._seen
        self._seen = now
        return max(0.0, now - self._begun) if self.pieces else 0.0

    def _judge(self, now: float) -> None:
        """How fast it wrote, but for one pause, as every disk makes them, and how fast it came while there was room."""
        coming = (now if self._full_at is None else self._full_at) - self._since
        worked = now - self._since - max(self._longest, now - self._begun)
        known = self._full_at is None or self._came >= _TELLING * self.room
        self._slow = known and self._written * coming < _MIN_SHARE * self._came * worked
        self._anew(now)

    def _anew(self, now: float) -> None:
        self._since, self._came, self._written, self._writes, self._longest = now, 0, 0, 0, 0.0
        self._full_at = now if self.waiting >= self.room else None


class StoreWriter(Generic[Piece]):
    """Calls `write` with a block's number and what begins with it, in order, and `wake` when that is done.

    `room`: for so many bytes that wait. Raises NoThreadError.
    """

    def __init__(self, write: Callable[[int, Piece], object], wake: Callable[[], None], room: int) -> None:
        self._write, self._wake = write, wake
        # The first one is being written; one that cannot be written stays.
        self._pieces: deque[tuple[int, Piece]] = deque()
        self._gauge = StoreGauge(room)
        self._failure: Exception | None = None
        self._closing = False
        self._changed = threading.Condition()
        start_thread("store writer", self._run)

    @property
    def ready(self) -> bool:
        """More may be put. Raises StoreError if the store took no more."""
        with self._changed:
            self._check()
            return self._gauge.waiting < self._gauge.room

    def put(self, block: int, piece: Piece) -> None:
        """Write it when the store takes it."""
        with self._changed:
            self._gauge.came(len(piece), time.monotonic())
            self._pieces.append((block, piece))
            self._changed.notify()

    @property
    def drained(self) -> bool:
        """Everything is written. Raises StoreError."""
        with self._changed:
            self._check()
            return not self._pieces

    @property
    def pace(self) -> StorePace:
        """How the store does. Raises StoreError."""
        with self._changed:
            self._check()
            return self._gauge.pace(time.monotonic())

    @property
    def writing(self) -> float:
        """For so many seconds the store has taken nothing, though something waits. Raises StoreError."""
        with self._changed:
            self._check()
            return self._gauge.writing(time.monotonic())

    def waiting(self) -> list[tuple[int, Piece]]:
        """What is not written, with its first block, in order. Raises StoreError."""
        with self._changed:
            self._check()
            return list(self._pieces)

    def close(self) -> None:
        """End the thread, at the latest when the store takes what it is writing; the rest is dropped."""
        with self._changed:
            self._closing = True
            # Who hangs in a write may do so for long: not with all that waits for it.
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
