"""Moments on their way from the thread that decides to one that tells of them: bounded, and never in the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from blast_controller.moments.moment import Moment


class Mailbox:
    """Keeps `most` moments that nobody has taken yet; what comes then is made one with the latest of them.

    `wake` is called, on the thread that puts, whenever the first moment lies in an empty box: it must only take a note.
    """

    def __init__(self, most: int, wake: Callable[[], None]) -> None:
        self._most = most
        self._wake = wake
        self._lock = Lock()
        self._moments: deque[Moment] = deque()
        self.merged = 0
        """How many moments could not be kept apart from the one before."""

    def put(self, moment: Moment) -> None:
        """Add a moment."""
        with self._lock:
            was_empty = not self._moments
            if len(self._moments) >= self._most:
                before = self._moments.pop()
                moment = moment._replace(changes=before.changes | moment.changes)
                self.merged += 1
            self._moments.append(moment)
        if was_empty:
            self._wake()

    def take(self) -> list[Moment]:
        """All that is there, oldest first."""
        with self._lock:
            found, self._moments = self._moments, deque()
        return list(found)

    def __len__(self) -> int:
        return len(self._moments)
