"""The single owner of the core: one thread that takes events in order, gives them to the core and carries its
commands to the devices and to whoever waits.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Protocol, TypeVar

from blast_controller.core.commands import Command, Publish, SetCircuits, SetForwarding
from blast_controller.core.controller import Core
from blast_controller.core.errors import RequestError
from blast_controller.core.events import DecisionTimed, Event, Tick
from blast_controller.core.requests import RequestEvent, RequestKey
from blast_controller.waiting import WaitingRoom

T = TypeVar("T")

LONGEST_SLEEP = 3600.0
"""Seconds; a queue refuses to wait for centuries, which a client may name as its patience."""
log = logging.getLogger(__name__)


class OpticalDriver(Protocol):
    """Sets cross-connects; answers every step by an event; never blocks."""

    def apply(self, command: SetCircuits) -> None:
        """Carry out one decision's changes on one optical switch."""


class ForwardingDriver(Protocol):
    """Sets rules on ToRs; answers every step by an event; never blocks."""

    def apply(self, command: SetForwarding) -> None:
        """Carry out one decision's changes on one ToR."""


class Turn:
    """The runtime's thread, lent to one piece of work: the core to look at, and the means to change it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.core = runtime.core
        self.now = time.monotonic()

    def handle(self, event: Event) -> None:
        """Give the core an event and carry out its commands. Raises RequestError when the core refuses it."""
        self._runtime.handle(event)

    def wait(
        self,
        request: RequestKey,
        timeout: float,
        wanted: Callable[[RequestEvent], bool],
        answer: Callable[[RequestEvent], Any],
        too_late: Callable[[], RequestError],
    ) -> Future[Any]:
        """The answer to a request's next wanted event, or the refusal `too_late` gives after `timeout` seconds."""
        return self._runtime.waiting.park(request, self.now + timeout, wanted, answer, too_late)


class Runtime:
    """Runs a core on real time and real devices."""

    def __init__(self, core: Core, fatal: Callable[[BaseException], None]) -> None:
        self.core = core
        self.waiting = WaitingRoom()
        self._fatal = fatal
        self._optical: OpticalDriver | None = None
        self._forwarding: ForwardingDriver | None = None
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)

    def start(self, optical: OpticalDriver, forwarding: ForwardingDriver) -> None:
        """Start to handle events."""
        self._optical, self._forwarding = optical, forwarding
        self._thread.start()

    def stop(self) -> None:
        """Handle what is already there and end."""
        self._inbox.put(None)
        self._thread.join(timeout=5)

    def post(self, event: Event) -> None:
        """Take an event from any thread; it is handled in order."""
        self._inbox.put(lambda: self.handle(event))

    def call(self, work: Callable[[Turn], T | Future[T]]) -> Future[T]:
        """Do `work` on the runtime's thread; the future has its result, or that of the future it returns."""
        outer: Future[T] = Future()
        self._inbox.put(lambda: _run_into(outer, lambda: work(Turn(self))))
        return outer

    def handle(self, event: Event) -> None:
        """Give the core an event and carry out its commands (on the runtime's thread only)."""
        started = time.monotonic()
        commands = self.core.handle(event, started)
        if any(isinstance(command, SetForwarding) for command in commands):
            self.core.handle(DecisionTimed(time.monotonic() - started), started)
        for command in commands:
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:
        match command:
            case SetCircuits() if self._optical:
                self._optical.apply(command)
            case SetForwarding() if self._forwarding:
                self._forwarding.apply(command)
            case Publish():
                self.waiting.notify(command.request, command.event)

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                work()
        except BaseException as error:
            log.exception("the core failed")
            self._fatal(error)

    def _next(self) -> Callable[[], None] | None:
        left = self._time_left()
        if left == 0:
            # Before more work, which may never end.
            return self._tick
        try:
            return self._inbox.get(timeout=left)
        except queue.Empty:
            return self._tick

    def _time_left(self) -> float | None:
        moments = [moment for moment in (self.core.next_timer(), self.waiting.next_deadline()) if moment is not None]
        return min(max(0.0, min(moments) - time.monotonic()), LONGEST_SLEEP) if moments else None

    def _tick(self) -> None:
        self.handle(Tick())
        self.waiting.expire(time.monotonic())


def _run_into(outer: Future[T], work: Callable[[], T | Future[T]]) -> None:
    try:
        result = work()
    except RequestError as error:
        refusal = error
        _settle(outer, lambda: outer.set_exception(refusal))
        return
    if isinstance(result, Future):
        result.add_done_callback(lambda inner: _copy(inner, outer))
        # A caller that is gone no longer waits.
        outer.add_done_callback(lambda done: result.cancel() if done.cancelled() else None)
    else:
        _settle(outer, lambda: outer.set_result(result))


def _copy(inner: Future[T], outer: Future[T]) -> None:
    if inner.cancelled():
        return
    error = inner.exception()
    if error is not None:
        _settle(outer, lambda: outer.set_exception(error))
    else:
        _settle(outer, lambda: outer.set_result(inner.result()))


def _settle(future: Future[T], settle: Callable[[], None]) -> None:
    if future.cancelled():
        return
    try:
        settle()
    except InvalidStateError:
        log.debug("the caller has gone away")
