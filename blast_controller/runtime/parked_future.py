"""A future of which thousands may be pending: nobody blocks on it, so it has no condition variable of its own.

One of `threading` takes 1.4 KB; the two of a parked call would be half of what it costs us.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class _Shared(threading.Condition):
    """One for all of them, on which nobody waits."""

    def notify_all(self) -> None:
        """There is nobody to be woken."""

    def wait(self, timeout: float | None = None) -> bool:
        """Not done yet; whoever has the time for it has waited for the callback."""
        return False


_SHARED = _Shared()


class ParkedFuture(Future[T]):
    """As its base; each method may be called from any thread. To block on it costs what it saves otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = _SHARED

    def result(self, timeout: float | None = None) -> T:
        """As `Future.result`."""
        self._await(timeout)
        return super().result(timeout=0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As `Future.exception`."""
        self._await(timeout)
        return super().exception(timeout=0)

    def _await(self, timeout: float | None) -> None:
        if timeout == 0 or self.done():
            return
        done = threading.Event()
        self.add_done_callback(lambda _: done.set())
        done.wait(timeout)
