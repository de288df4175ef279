"""Callers that wait for something to happen: parked until it does, until their time is over, or until they leave."""

from __future__ import annotations

import heapq
import math
import queue
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from blast_controller.core.model.errors import RejectedError, RequestError
from blast_controller.runtime.faults import logged, without_frames
from blast_controller.runtime.parked_future import ParkedFuture
from blast_controller.runtime.waiter_index import WaiterIndex

MAX_ANSWERED = 64
"""Answers given at once: making one may mean to describe a large grant, or to find out what a request waits for."""
READ_ONLY_SHARE = 0.75
"""The share of places for read-only waiters; the others are reserved for requests."""


@dataclass(frozen=True, slots=True)
class WaitingLimits:
    """The limits of waiters: in total, and for one account."""

    in_all: int = 12_288
    of_one: int = 4_096


@dataclass(frozen=True, slots=True)
class WaitingCaller:
    """The account of a waiter, and whether it waits for a grant or is read-only."""

    account: Hashable
    for_grant: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait for the first event that `matches` accepts. The caller gets the result of `answer` for it, or `too_late`.

    With `or_last` it ends with the last event of the topic, too. The live state is ahead of the events: `matches` and
    `answer` must not read it. If events of a topic are numbered from 1, events up to `after` are ignored without
    calling `matches`. A wait without a caller takes no place.
    """

    matches: Callable[..., bool]
    answer: Callable[..., object]
    too_late: Callable[[], RequestError]
    caller: WaitingCaller | None = None
    after: int = 0
    or_last: bool = False


class _Waiter(ParkedFuture[object]):
    """A waiter of a topic, and its future."""

    def __init__(self, topic: Hashable, wait: Wait) -> None:
        super().__init__()
        self.topic, self.wait, self.present = topic, wait, True


class WaitingRoom:
    """Used by one thread; only the futures may be cancelled from others.

    Notified and expired waiters queue until `serve`, which answers some at a time. Deadlines are a heap in which served
    or cancelled waiters stay until they are due, or until they are half of all.
    """

    def __init__(self, places: WaitingLimits | None = None) -> None:
        self.places = places or WaitingLimits()
        self._audiences: defaultdict[Hashable, WaiterIndex[_Waiter]] = defaultdict(WaiterIndex)
        self._called: deque[tuple[_Waiter, Callable[[], object]]] = deque()
        self._deadlines: list[tuple[float, int, _Waiter]] = []
        self._count = 0
        self._present = 0
        self._taken: Counter[Hashable] = Counter()
        self._read_only: Counter[Hashable] = Counter()
        self._cancelled: queue.SimpleQueue[Future[object]] = queue.SimpleQueue()

    def park(self, topic: Hashable, deadline: float, wait: Wait) -> Future[Any]:
        """Wait for an event on a topic. Raises RejectedError when the caller's places, or all, are taken."""
        self._take_place(wait.caller)
        waiter = _Waiter(topic, wait)
        self._audiences[topic].add(waiter, wait.after)
        self._count += 1
        self._present += 1
        if deadline < math.inf:
            heapq.heappush(self._deadlines, (deadline, self._count, waiter))
        waiter.add_done_callback(self._note_done)
        return waiter

    def notify(self, topic: Hashable, event: object, number: float = math.inf) -> None:
        """Call every waiter that this event matches; `serve` answers them.

        `number` is infinite for the last event of a topic, too: it also concerns waiters for a later one.
        """
        audience = self._audiences.get(topic)
        for waiter in audience.reached_by(number) if audience else ():
            is_last = waiter.wait.or_last and number == math.inf
            if not waiter.cancelled() and (is_last or waiter.wait.matches(event)):
                self._call(waiter, partial(waiter.wait.answer, event))

    def expire(self, now: float) -> None:
        """Expire waiters past their deadline; `serve` refuses them."""
        while (deadline := self._next_expiry()) is not None and deadline <= now:
            waiter = heapq.heappop(self._deadlines)[2]
            self._call(waiter, partial(_refuse, waiter.wait.too_late))

    def serve(self, max_count: int = MAX_ANSWERED) -> None:
        """Answer at most `max_count` notified waiters, first come first served."""
        while self._called and max_count > 0:
            waiter, answer = self._called.popleft()
            if not waiter.cancelled():
                _resolve(waiter, answer)
                max_count -= 1

    def next_deadline(self) -> float | None:
        """Return the latest time of the next `expire`; a past time while waiters queue."""
        return -math.inf if self._called else self._next_expiry()

    def _next_expiry(self) -> float | None:
        self._remove_cancelled()
        while self._deadlines and not self._deadlines[0][2].present:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _call(self, waiter: _Waiter, answer: Callable[[], object]) -> None:
        self._leave(waiter)
        self._called.append((waiter, answer))

    # --------------------------------------------------------------------------------------------- places

    def check_place(self, caller: WaitingCaller) -> None:
        """Raise RejectedError when the places of the caller's account, or all, are taken."""
        self._remove_cancelled()
        if not caller.for_grant:
            max_of_one = int(READ_ONLY_SHARE * self.places.of_one)
            max_in_all = int(READ_ONLY_SHARE * self.places.in_all)
            self._check(self._read_only[caller.account], max_of_one, self._read_only.total(), max_in_all)
        self._check(self._taken[caller.account], self.places.of_one, self._taken.total(), self.places.in_all)

    def _take_place(self, caller: WaitingCaller | None) -> None:
        if caller is None:
            return
        self.check_place(caller)
        self._taken[caller.account] += 1
        if not caller.for_grant:
            self._read_only[caller.account] += 1

    def _check(self, own: int, max_own: int, every: int, max_in_all: int) -> None:
        if own >= max_own:
            raise _too_many(f"your account has {own} waiting calls, its limit")
        if every >= max_in_all:
            raise _too_many(f"the controller has {every} waiting calls, its limit")

    def _free_place(self, caller: WaitingCaller | None) -> None:
        if caller is None:
            return
        _count_down(self._taken, caller.account)
        if not caller.for_grant:
            _count_down(self._read_only, caller.account)

    # -------------------------------------------------------------------------------------------- leaving

    def _note_done(self, waiter: Future[object]) -> None:
        """Note a cancelled or settled future. From any thread."""
        if waiter.cancelled():
            self._cancelled.put(waiter)

    def _remove_cancelled(self) -> None:
        """Remove cancelled waiters."""
        while not self._cancelled.empty():
            waiter = self._cancelled.get()
            assert isinstance(waiter, _Waiter)
            self._leave(waiter)
        if len(self._deadlines) > 2 * self._present + 16:
            self._deadlines = [entry for entry in self._deadlines if entry[2].present]
            heapq.heapify(self._deadlines)

    def _leave(self, waiter: _Waiter) -> None:
        if not waiter.present:
            return
        waiter.present = False
        audience = self._audiences[waiter.topic]
        audience.remove(waiter, waiter.wait.after)
        if not audience:
            del self._audiences[waiter.topic]
        self._present -= 1
        self._free_place(waiter.wait.caller)


def _too_many(message: str) -> RejectedError:
    return RejectedError("too_many_waiting", f"{message}: wait for answers, or try again later.")


def _count_down(counter: Counter[Hashable], account: Hashable) -> None:
    counter[account] -= 1
    if not counter[account]:
        del counter[account]


def _refuse(too_late: Callable[[], RequestError]) -> None:
    raise too_late()


def _resolve(future: Future[object], answer: Callable[[], object]) -> None:
    try:
        result = answer()
    except RequestError as error:
        _fail(future, without_frames(error))
    except Exception as error:  # noqa: BLE001 - making an answer is looking: it fails for this caller alone
        _fail(future, logged("the answer to a wait", error))
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(result)


def _fail(future: Future[object], error: Exception) -> None:
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
