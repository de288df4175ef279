"""An event loop whose clock stops while any task works, so that a busy machine causes no delays.

Coroutines marked `virtual_time` run in such a loop. Sockets within the loop work as usual, and so does code in its
executor, if it pauses by `pause`; other threads and processes do not, since they run in real time. A polling task must
sleep in between, or no time passes.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.waiting import HANGING

IN_FLIGHT = 0.1
"""Seconds of real time in which what was sent on loopback arrives; only then does the clock move on without it."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that advances `time()`, in seconds, to the next timer whenever all tasks wait."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._working = 0
        self._executor: Executor | None = None
        super().__init__(_Waiting(lambda: self._working > 0, self._pass))

    def time(self) -> float:
        return self._seconds

    def _pass(self, seconds: float) -> None:
        self._seconds += seconds

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:
        """Run a function as usual; no time passes while it works."""
        if executor is None and self._executor is None:
            self._executor = ThreadPoolExecutor()
            self.set_default_executor(self._executor)
        working: Future[Any] = (executor or self._executor).submit(func, *args)  # type: ignore[union-attr]
        self._working += 1
        answer = asyncio.wrap_future(working, loop=self)
        # After the answer, so that no time passes before it is there.
        working.add_done_callback(lambda _: None if self.is_closed() else self.call_soon_threadsafe(self._rest))
        return answer

    def pause(self, seconds: float) -> None:
        """Let `seconds` pass; for what runs in the executor."""
        over = threading.Event()
        self.call_soon_threadsafe(self._pause, seconds, over)
        assert over.wait(HANGING)

    def _pause(self, seconds: float, over: threading.Event) -> None:
        self._rest()
        self.call_later(seconds, self._go_on, over)

    def _go_on(self, over: threading.Event) -> None:
        self._working += 1
        over.set()

    def _rest(self) -> None:
        self._working -= 1


class _Waiting(selectors.EpollSelector):
    """A selector that waits for descriptors, and advances the time only if no task works."""

    def __init__(self, at_work: Callable[[], bool], passes: Callable[[float], None]) -> None:
        super().__init__()
        self._at_work, self._passes = at_work, passes

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if self._at_work():
            return super().select(None)
        found = super().select(min(timeout, IN_FLIGHT))
        if not found:
            self._passes(timeout)
        return found


def give_virtual_time(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Let time.monotonic() in `modules` return the time of the loop."""
    for module in modules:
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time()))
