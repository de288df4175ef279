"""Callers that wait for something to happen to a request: parked until it does or their time is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from blast_controller.core.errors import RequestError
from blast_controller.core.requests import RequestEvent, RequestKey


@dataclass(eq=False, slots=True)
class _Waiter:
    deadline: float
    wanted: Callable[[RequestEvent], bool]
    answer: Callable[[RequestEvent], Any]
    too_late: Callable[[], RequestError]
    future: Future[Any] = field(default_factory=Future)


class WaitingRoom:
    """Used by one thread; only the futures may be cancelled from others."""

    def __init__(self) -> None:
        self._waiters: defaultdict[RequestKey, list[_Waiter]] = defaultdict(list)

    def park(
        self,
        request: RequestKey,
        deadline: float,
        wanted: Callable[[RequestEvent], bool],
        answer: Callable[[RequestEvent], Any],
        too_late: Callable[[], RequestError],
    ) -> Future[Any]:
        """Wait for the first event that is `wanted`; the future gets what `answer` makes of it, or raises."""
        waiter = _Waiter(deadline, wanted, answer, too_late)
        self._waiters[request].append(waiter)
        return waiter.future

    def notify(self, request: RequestKey, event: RequestEvent) -> None:
        """Answer everyone who wants this event."""
        for waiter in self._waiters.pop(request, []):
            if waiter.future.cancelled():
                continue
            if waiter.wanted(event):
                _resolve(waiter, event)
            else:
                self._waiters[request].append(waiter)

    def next_deadline(self) -> float | None:
        """When `expire` is wanted."""
        return min((w.deadline for waiters in self._waiters.values() for w in waiters), default=None)

    def expire(self, now: float) -> None:
        """Send away everyone whose time is over, and forget those who left."""
        for request in list(self._waiters):
            waiters = [w for w in self._waiters.pop(request) if not w.future.cancelled()]
            for waiter in waiters:
                if waiter.deadline <= now:
                    _fail(waiter.future, waiter.too_late())
            left = [w for w in waiters if w.deadline > now]
            if left:
                self._waiters[request] = left


def _resolve(waiter: _Waiter, event: RequestEvent) -> None:
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
