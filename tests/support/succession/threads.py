"""Replacements of `threading`, `time`, `queue` and event loops for the controller, on the scheduler's clock."""

from __future__ import annotations

import asyncio
import queue as real_queue
import threading as real_threading
import time as real_time
from asyncio import events
from collections import deque
from collections.abc import Callable
from concurrent import futures
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.support.succession.scheduler import Scheduler, VirtualThread, Wake

WALL = 1_700_000_000.0
"""The wall-clock time at 0 on the scheduler's clock."""


def overlay(module: ModuleType, **names: object) -> SimpleNamespace:
    """Return a module with some of its names replaced."""
    return SimpleNamespace(**{**vars(module), **names})


def modules(scheduler: Scheduler) -> dict[str, SimpleNamespace]:
    """Return the modules by the names under which they are imported."""

    def bound(kind: type) -> type:
        return type(kind.__name__, (kind,), {"_scheduler": scheduler})

    threading = overlay(real_threading, **{kind.__name__: bound(kind) for kind in (Thread, Event, Lock, Timer)})
    time = overlay(
        real_time,
        monotonic=lambda: scheduler.now,
        perf_counter=lambda: scheduler.now,
        clock_gettime=lambda _: scheduler.now,
        time=lambda: WALL + scheduler.now + scheduler.process.wall,
    )
    queue = overlay(real_queue, SimpleQueue=bound(SimpleQueue))
    loops = overlay(asyncio, new_event_loop=lambda: VirtualLoop(scheduler), set_event_loop=lambda _: None)
    return {"threading": threading, "time": time, "queue": queue, "asyncio": loops}


class Primitive:
    """An object on which threads wait on the scheduler's clock, in the order of their arrival."""

    _scheduler: Scheduler

    def __init__(self) -> None:
        self._waiting: deque[Wake] = deque()

    def __class_getitem__(cls, _: object) -> type:
        return cls

    def _end(self, timeout: float | None) -> float | None:
        return None if timeout is None else self._scheduler.now + max(0.0, timeout)

    def _wait(self, end: float | None = None) -> None:
        wake = self._scheduler.waiting(end)
        self._waiting.append(wake)
        self._scheduler.sleep()

    def _wake_first(self) -> None:
        while self._waiting:
            wake = self._waiting.popleft()
            if not wake.is_over:
                self._scheduler.wake(wake)
                return


class Thread(Primitive):
    """A replacement of threading.Thread."""

    def __init__(self, target: Callable[..., object], name: str = "", daemon: bool = False, args: tuple = ()) -> None:
        self.name, self.daemon = name, daemon
        self._target, self._args = target, args
        self._thread: VirtualThread | None = None

    def start(self) -> None:
        self._thread = self._scheduler.spawn(self._scheduler.process, self._run)

    def _run(self) -> None:
        self._target(*self._args)

    def is_alive(self) -> bool:
        return self._thread is not None and not self._thread.done

    def join(self, timeout: float | None = None) -> None:
        if self._thread is not None and self.is_alive():
            self._waiting = self._thread.joined
            self._wait(self._end(timeout))


class Event(Primitive):
    """A replacement of threading.Event."""

    _is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        while self._waiting:
            self._wake_first()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._wait(self._end(timeout))
        return self._is_set


class Lock(Primitive):
    """A replacement of threading.Lock."""

    _is_held = False

    def acquire(self, blocking: bool = True) -> bool:
        while self._is_held:
            if not blocking:
                return False
            self._wait()
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        self._wake_first()

    def locked(self) -> bool:
        return self._is_held

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Timer(Thread):
    """A replacement of threading.Timer."""

    def __init__(self, interval: float, function: Callable[..., object], args: list | None = None) -> None:
        super().__init__(function, args=tuple(args or ()))
        self._interval = interval

    def _run(self) -> None:
        self._scheduler.wait(self._scheduler.now + self._interval)
        super()._run()


class SimpleQueue(Primitive):
    """A replacement of queue.SimpleQueue."""

    def __init__(self) -> None:
        super().__init__()
        self._items: deque[Any] = deque()

    def put(self, item: object) -> None:
        self._items.append(item)
        self._wake_first()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        end = self._end(timeout)
        while not self._items:
            if not block or (end is not None and end <= self._scheduler.now):
                raise real_queue.Empty
            self._wait(end)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items


class _AnyFuture(type):
    """A type that includes other implementations of futures."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, futures.Future)


def waiting_future(scheduler: Scheduler) -> type[futures.Future]:
    """Return a Future whose result is waited for on the virtual clock."""

    class Future(futures.Future, metaclass=_AnyFuture):
        def result(self, timeout: float | None = None) -> Any:
            if not self.done():
                wake = scheduler.waiting(None if timeout is None else scheduler.now + timeout)
                self.add_done_callback(lambda _: scheduler.wake(wake))
                scheduler.sleep()
            return super().result(0)

    return Future


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop of one thread. It has no descriptors: nothing but its own callbacks and others' calls wake it."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._selector = self
        self._wake: Wake | None = None
        self._is_woken = False
        self.set_exception_handler(lambda *_: None)

    def time(self) -> float:
        return self._scheduler.now

    def select(self, timeout: float | None) -> list[object]:
        """Wait as a selector would, while other loops run on this same real thread."""
        if self._is_woken or (timeout is not None and timeout <= 0):
            self._is_woken = False
            return []
        events._set_running_loop(None)
        try:
            self._wake = self._scheduler.waiting(None if timeout is None else self._scheduler.now + timeout)
            self._scheduler.sleep()
        finally:
            self._wake, self._is_woken = None, False
            events._set_running_loop(self)
        return []

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def __del__(self) -> None:
        """Do nothing, since a killed process does not close its objects either."""

    def _process_events(self, _: list[object]) -> None:
        pass

    def _write_to_self(self) -> None:
        self._is_woken = True
        if self._wake is not None:
            self._scheduler.wake(self._wake)
