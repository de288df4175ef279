"""Results of work reach the caller's future, in any order of the work's own future and the caller's end."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from blast_controller.core.model.errors import UnknownRequestError
from blast_controller.runtime.faults import EventFailedError, InternalError, action_errors
from blast_controller.runtime.parked_future import ParkedFuture
from blast_controller.runtime.settling import run_into


def failing(error: Exception):
    def work(_argument: object) -> None:
        raise error

    return work


@pytest.mark.parametrize("is_done", [True, False])
def test_result_of_future_is_copied_when_it_is_done(is_done: bool):
    inner, outer = Future[int](), ParkedFuture[int]()
    settle = run_into(outer, lambda _: inner, None)
    if is_done:
        inner.set_result(5)
    settle()
    assert outer.done() is is_done
    if not is_done:
        inner.set_result(5)
    assert outer.result(timeout=0) == 5


@pytest.mark.parametrize("is_done", [True, False])
def test_error_of_future_is_copied_when_it_is_done(is_done: bool):
    inner, outer, error = Future[int](), ParkedFuture[int](), UnknownRequestError("a")
    settle = run_into(outer, lambda _: inner, None)
    if is_done:
        inner.set_exception(error)
    settle()
    if not is_done:
        inner.set_exception(error)
    assert outer.exception(timeout=0) is error


def test_caller_that_disconnects_ends_the_wait_of_its_work():
    inner, outer = Future[int](), ParkedFuture[int]()
    run_into(outer, lambda _: inner, None)()
    outer.cancel()
    assert inner.cancelled()


@pytest.mark.parametrize("work", [lambda _: 5, failing(UnknownRequestError("a"))])
def test_caller_that_disconnected_gets_nothing(work):
    outer = ParkedFuture[int]()
    settle = run_into(outer, work, None)
    outer.cancel()
    settle()
    assert outer.cancelled()


def test_wait_that_was_cancelled_leaves_its_caller_waiting():
    inner, outer = Future[int](), ParkedFuture[int]()
    inner.cancel()
    run_into(outer, lambda _: inner, None)()
    assert not outer.done()


def test_unexpected_error_reaches_the_caller_as_an_internal_error():
    outer = ParkedFuture[int]()
    run_into(outer, failing(ValueError("secret")), None)()
    error = outer.exception(timeout=0)
    assert isinstance(error, InternalError) and "secret" not in str(error)


def test_error_of_the_core_names_its_action():
    with pytest.raises(EventFailedError, match="Tick failed: ValueError: no"), action_errors("Tick"):
        raise ValueError("no")
    with pytest.raises(UnknownRequestError), action_errors("Tick"):
        raise UnknownRequestError("a")
    with pytest.raises(KeyboardInterrupt), action_errors("Tick"):
        raise KeyboardInterrupt
