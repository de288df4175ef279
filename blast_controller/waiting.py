"""Callers that wait for something to happen: parked until it does, until their time is over, or until they leave."""

from __future__ import annotations

import heapq
import queue
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from blast_controller.core.errors import RequestError


@dataclass(eq=False, slots=True)
class _Waiter:
    topic: Hashable
    wanted: Callable[[Any], bool]
    answer: Callable[[Any], Any]
    too_late: Callable[[], RequestError]
    future: Future[Any] = field(default_factory=Future)


class WaitingRoom:
    """Used by one thread; only the futures may be cancelled from others.

    Deadlines are a heap in which those who are served or gone stay until they come up, or until they are the half.
    """

    def __init__(self) -> None:
        self._waiters: dict[Hashable, dict[_Waiter, None]] = {}
        self._deadlines: list[tuple[float, int, _Waiter]] = []
        self._count = 0
        self._present = 0
        self._gone: queue.SimpleQueue[_Waiter] = queue.SimpleQueue()

    def park(
        self,
        topic: Hashable,
        deadline: float,
        wanted: Callable[[Any], bool],
        answer: Callable[[Any], Any],
        too_late: Callable[[], RequestError],
    ) -> Future[Any]:
        """Wait for the first event that is `wanted`; the future gets what `answer` makes of it, or raises."""
        waiter = _Waiter(topic, wanted, answer, too_late)
        self._waiters.setdefault(topic, {})[waiter] = None
        self._count += 1
        self._present += 1
        heapq.heappush(self._deadlines, (deadline, self._count, waiter))
        waiter.future.add_done_callback(lambda done: self._gone.put(waiter) if done.cancelled() else None)
        return waiter.future

    def notify(self, topic: Hashable, event: Any) -> None:
        """Answer everyone who wants this event."""
        for waiter in list(self._waiters.get(topic, ())):
            if not waiter.future.cancelled() and waiter.wanted(event):
                self._leave(waiter)
                _resolve(waiter, event)

    def next_deadline(self) -> float | None:
        """When `expire` is wanted."""
        self._see_off()
        while self._deadlines and self._deadlines[0][2].future.done():
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float) -> None:
        """Send away everyone whose time is over."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            waiter = heapq.heappop(self._deadlines)[2]
            self._leave(waiter)
            _fail(waiter.future, waiter.too_late())

    def _see_off(self) -> None:
        """Forget those who have left by themselves."""
        while not self._gone.empty():
            self._leave(self._gone.get())
        if len(self._deadlines) > 2 * self._present + 16:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].future.done()]
            heapq.heapify(self._deadlines)

    def _leave(self, waiter: _Waiter) -> None:
        waiters = self._waiters.get(waiter.topic, {})
        if waiter in waiters:
            del waiters[waiter]
            self._present -= 1
        if not waiters:
            self._waiters.pop(waiter.topic, None)


def _resolve(waiter: _Waiter, event: Any) -> None:
    try:
        result = waiter.answer(event)
    except RequestError as error:
        _fail(waiter.future, error)
    else:
        if waiter.future.set_running_or_notify_cancel():
            waiter.future.set_result(result)


def _fail(future: Future[Any], error: RequestError) -> None:
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
