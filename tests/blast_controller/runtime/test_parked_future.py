"""`ParkedFuture`, which has no condition variable of its own, behaves as every future."""

from __future__ import annotations

import concurrent.futures
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as TooLate

import pytest

from blast_controller.runtime.parked_future import ParkedFuture


def settle(future: Future[int]) -> None:
    future.set_result(7)


def fail(future: Future[int]) -> None:
    future.set_exception(ValueError("no"))


def cancel(future: Future[int]) -> None:
    assert future.cancel()


def run(future: Future[int]) -> None:
    assert future.set_running_or_notify_cancel()


def observed_states(future: Future[int], steps: list[Callable[[Future[int]], None]]) -> list[object]:
    """Return the observable state of a future after each step."""
    seen: list[object] = []
    future.add_done_callback(lambda done: seen.append(("called", done.cancelled())))
    for step in steps:
        try:
            step(future)
        except InvalidStateError:
            seen.append("too late")
        seen.append((future.done(), future.running(), future.cancelled()))
        for ask in (future.result, future.exception):
            try:
                seen.append(repr(ask(timeout=0)))
            except (TooLate, CancelledError, ValueError) as error:
                seen.append(type(error).__name__)
    return seen


@pytest.mark.parametrize(
    "steps",
    [[settle], [fail], [cancel], [run, settle], [run, fail], [settle, fail], [cancel, settle], [cancel, cancel]],
    ids=lambda steps: "-".join(step.__name__ for step in steps),
)
def test_parked_future_behaves_as_a_future(steps: list[Callable[[Future[int]], None]]) -> None:
    assert observed_states(ParkedFuture(), steps) == observed_states(Future(), steps)


@pytest.mark.parametrize("step", [settle, fail, cancel])
def test_parked_future_wakes_only_its_own_waiter(step: Callable[[Future[int]], None]) -> None:
    future: ParkedFuture[int] = ParkedFuture()
    outcome: list[object] = []

    def block() -> None:
        try:
            outcome.append(future.result())
        except (ValueError, CancelledError) as error:
            outcome.append(type(error))

    blocked = threading.Thread(target=block)
    blocked.start()
    other: ParkedFuture[int] = ParkedFuture()
    other.set_result(1)
    assert other.result() == 1
    assert outcome == []
    step(future)
    blocked.join(30)
    assert outcome == [{settle: 7, fail: ValueError, cancel: CancelledError}[step]]


def test_wait_accepts_several_parked_futures() -> None:
    futures: list[ParkedFuture[int]] = [ParkedFuture() for _ in range(3)]
    threads = [threading.Thread(target=future.set_result, args=(number,)) for number, future in enumerate(futures)]
    for thread in threads:
        thread.start()
    done, _ = concurrent.futures.wait(futures, 30)
    assert sorted(future.result() for future in done) == [0, 1, 2]
    for thread in threads:
        thread.join()


def test_parked_future_uses_less_than_a_third_of_the_memory() -> None:
    def size(kind: type[Future[int]]) -> float:
        tracemalloc.start()
        try:
            kept = [kind() for _ in range(1000)]
            return tracemalloc.get_traced_memory()[0] / len(kept)
        finally:
            tracemalloc.stop()

    assert size(ParkedFuture) < size(Future) / 3
