"""Threads of several processes that alternate on a virtual clock: the same seed gives the same course of events.

A thread is a greenlet. It runs until it waits; time passes only while all wait. A process can be paused, and resumes
later with its clock ahead; and it can end, which stops all of its threads at once.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from greenlet import GreenletExit, getcurrent, greenlet

MAX_AT_ONCE = 200_000
"""Maximum number of actions without any time passing, to detect an endless loop."""


@dataclass(eq=False)
class Process:
    """A process: `name` identifies it; `wall` is the error of its wall clock."""

    name: str
    paused: bool = False
    ended: bool = False
    wall: float = 0.0
    threads: list[VirtualThread] = field(default_factory=list)
    deferred: list[Callable[[], None]] = field(default_factory=list)


@dataclass(eq=False)
class Wake:
    """One wait of a thread, which ends once, by the first event."""

    thread: VirtualThread
    is_over: bool = False


class VirtualThread:
    """One greenlet of a process."""

    def __init__(self, scheduler: Scheduler, process: Process, target: Callable[[], None]) -> None:
        self.process = process
        self.done = False
        self._scheduler = scheduler
        self._target = target
        self.greenlet = greenlet(self._run, scheduler.hub)
        self.joined: deque[Wake] = deque()

    def _run(self) -> None:
        try:
            self._target()
        except GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001 - reported by the run
            self._scheduler.failures.append(error)
        finally:
            self.done = True
            for wake in self.joined:
                self._scheduler.wake(wake)


class Scheduler:
    """The clock and the running thread. `jitter` draws the delay of a thread beyond its wake-up time."""

    def __init__(self, jitter: Callable[[], float] = lambda: 0.0) -> None:
        self.now = 1000.0
        self.hub = getcurrent()
        self.failures: list[BaseException] = []
        self.world = Process("the world")
        self._jitter = jitter
        self._order = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._current: VirtualThread | None = None

    @property
    def process(self) -> Process:
        """Return the process that runs now."""
        return self.world if self._current is None else self._current.process

    # ------------------------------------------------------------------------------------------------------- agenda

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Run an action at a later time, in no process's thread."""
        heapq.heappush(self._agenda, (moment, next(self._order), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Run an action after `seconds`, like `at`."""
        self.at(self.now + seconds, act)

    def run(self, until: float, is_done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until then, or until `is_done` returns True after an action."""
        actions = 0
        while self._agenda and not is_done():
            moment = self._agenda[0][0]
            if moment > until:
                break
            actions = 0 if moment > self.now else actions + 1
            assert actions < MAX_AT_ONCE, "an endless loop"
            self.now = max(self.now, moment)
            heapq.heappop(self._agenda)[2]()
            if self.failures:
                raise self.failures[0]
        else:
            return
        self.now = max(self.now, until)

    # ------------------------------------------------------------------------------------------------------ threads

    def spawn(self, process: Process, target: Callable[[], None]) -> VirtualThread:
        """Start a thread."""
        thread = VirtualThread(self, process, target)
        process.threads.append(thread)
        if len(process.threads) % 64 == 0:
            process.threads = [one for one in process.threads if not one.done]
        self.after(self._jitter(), lambda: self._resume(thread))
        return thread

    def wait(self, until: float) -> None:
        """Let time pass until then."""
        self.waiting(until)
        self.sleep()

    def waiting(self, until: float | None = None) -> Wake:
        """Return a wait of the running thread, which is about to `sleep`; it is over then at the latest."""
        assert self._current is not None, "only threads wait"
        wake = Wake(self._current)
        if until is not None:
            self.at(until + self._jitter(), lambda: self._over(wake))
        return wake

    def sleep(self) -> None:
        """Run others until the thread's wait is over."""
        self.check_alive()
        self.hub.switch()
        self.check_alive()

    def check_alive(self) -> None:
        """End here where the process has ended."""
        if self._current is not None and self._current.process.ended:
            raise GreenletExit

    def wake(self, wake: Wake) -> None:
        """Wake the thread that waits."""
        if not wake.is_over:
            wake.is_over = True
            self.after(self._jitter(), lambda: self._resume(wake.thread))

    def _over(self, wake: Wake) -> None:
        if not wake.is_over:
            wake.is_over = True
            self._resume(wake.thread)

    def _resume(self, thread: VirtualThread) -> None:
        process = thread.process
        if process.ended or thread.done:
            return
        if process.paused:
            process.deferred.append(lambda: self._resume(thread))
            return
        before, self._current = self._current, thread
        try:
            thread.greenlet.switch()
        finally:
            self._current = before

    # ---------------------------------------------------------------------------------------------------- processes

    def pause(self, process: Process) -> None:
        """Stop it where it is."""
        process.paused = True

    def go_on(self, process: Process) -> None:
        """Resume a process; it executes its overdue work now."""
        process.paused = False
        deferred, process.deferred = process.deferred, []
        for resume in deferred:
            self.after(self._jitter(), resume)

    def end(self, process: Process) -> None:
        """End a process; if one of its own threads calls this, that thread ends by itself."""
        process.ended = True
        if self._current is None:
            self._reap(process)
        else:
            # A greenlet that ends returns to the hub, regardless of its caller.
            self.after(0.0, lambda: self._reap(process))

    def _reap(self, process: Process) -> None:
        threads, process.threads = process.threads, []
        for thread in threads:
            if not thread.done:
                self._current = thread
                try:
                    thread.greenlet.throw(GreenletExit)
                finally:
                    self._current = None
