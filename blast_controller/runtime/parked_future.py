"""A future of which thousands may be pending: no thread blocks on it, so it has no condition variable of its own.

One of `threading` takes 1.4 KB; the two of a parked call would be half of its cost.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class _Shared(threading.Condition):
    """A shared condition, on which no thread waits."""

    def notify_all(self) -> None:
        """Do nothing: there are no waiters."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return false at once; callers that need the result use a callback."""
        return False


_SHARED = _Shared()


class ParkedFuture(Future[T]):
    """A future without a condition variable of its own; each method may be called from any thread.

    Blocking on it creates an event for the time of the wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self._condition = _SHARED

    def result(self, timeout: float | None = None) -> T:
        """Return the result like `Future.result`."""
        self._await(timeout)
        return super().result(timeout=0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception like `Future.exception`."""
        self._await(timeout)
        return super().exception(timeout=0)

    def _await(self, timeout: float | None) -> None:
        if timeout == 0 or self.done():
            return
        done = threading.Event()
        self.add_done_callback(lambda _: done.set())
        done.wait(timeout)
