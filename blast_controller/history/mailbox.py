"""A bounded queue of moments from the deciding thread to a consumer; it never blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from blast_controller.history.moment import Moment


class Mailbox:
    """Keeps `capacity` moments; further ones are merged with the latest of them.

    `wake` is called, on the producer's thread, whenever a moment arrives in an empty box: it must only take a note.
    """

    def __init__(self, capacity: int, wake: Callable[[], None]) -> None:
        self._capacity = capacity
        self._wake = wake
        self._lock = Lock()
        self._moments: deque[Moment] = deque()
        self.merged = 0
        """The number of moments merged with their predecessor."""

    def put(self, moment: Moment) -> None:
        """Add a moment."""
        with self._lock:
            was_empty = not self._moments
            if len(self._moments) >= self._capacity:
                before = self._moments.pop()
                moment = moment._replace(changes=before.changes | moment.changes)
                self.merged += 1
            self._moments.append(moment)
        if was_empty:
            self._wake()

    def take(self) -> list[Moment]:
        """Return and clear all moments, oldest first."""
        with self._lock:
            found, self._moments = self._moments, deque()
        return list(found)

    def __len__(self) -> int:
        return len(self._moments)
