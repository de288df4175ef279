"""Worker processes that end immediately when their results are no longer needed.

A terminal sends Ctrl-C to every process of a command. Workers ignore it, even while they start; the parent process
handles it and ends them at once. A worker that dies is reported as an error instead of an endless wait, and workers end
when their parent is gone.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

LOOK_SECONDS = 0.2
"""Progress is shown, and Ctrl-C takes effect, within this time."""


class WorkerDiedError(Exception):
    """A process ended in the middle of its work; the text is a sentence."""


def computed(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int, waiting: Callable[[], object] = lambda: None
) -> Generator[tuple[int, Result], None, None]:
    """Yield the place of each item and what `work` makes of it, as it comes; the first items are begun first.

    `work` and the items must be importable and picklable. `waiting` is called five times a second. Raises what `work`
    raises, and WorkerDiedError; the processes end with the generator.
    """
    with _workers(work, min(processes, len(items))) as workers:
        at: dict[Connection, int] = {}
        places = iter(range(len(items)))
        for connection, place in zip(workers, places, strict=False):
            connection.send(items[place])
            at[connection] = place
        while at:
            ready = wait(list(at), LOOK_SECONDS)
            for connection in [one for one in at if one in ready]:
                result = _received(connection, workers[connection])
                place = at.pop(connection)
                following = next(places, None)
                if following is not None:
                    connection.send(items[following])
                    at[connection] = following
                yield place, result
            waiting()


def _received(connection: Connection, process: BaseProcess) -> Any:
    try:
        result, error = connection.recv()
    except (EOFError, OSError):
        process.join()
        raise WorkerDiedError(
            f"a process that calculates ended with status {process.exitcode}, perhaps for want of memory: "
            "try fewer --processes"
        ) from None
    if error is not None:
        raise error
    return result


@contextmanager
def _workers(work: Callable[..., object], count: int) -> Iterator[dict[Connection, BaseProcess]]:
    # Forked children of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    # It is started with the first process, and lets signals through when it is.
    resource_tracker.ensure_running()
    workers: dict[Connection, BaseProcess] = {}
    try:
        with _interrupts_held_back():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
                process.start()
                theirs.close()
                workers[ours] = process
        yield workers
    finally:
        for process in workers.values():
            process.kill()
        for connection, process in workers.items():
            process.join()
            connection.close()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let SIGINT wait until the end of the block; processes that are started in it inherit that for ever."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _interrupts_noted():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupts_noted() -> Iterator[None]:
    """Note interrupts that the mask of this thread cannot block, and handle the first one after the block.

    Other threads, such as a library's, receive the signal.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    noted: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: noted.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if noted:
            handler(signal.SIGINT, noted[0])


def _serve(connection: Connection, work: Callable[..., object]) -> None:
    # The parent process may have ended.
    with suppress(EOFError, OSError):
        while True:
            item = connection.recv()
            answer: tuple[object, Exception | None]
            try:
                answer = work(item), None
            except Exception as error:  # noqa: BLE001 - it is raised where the result is waited for
                answer = None, error
            connection.send(answer)
