"""From what came of a piece of work to the future of whoever waits for it, who may be gone."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import TypeVar

from blast_controller.core.model.errors import RequestError
from blast_controller.runtime.faults import EventFailed, logged, without_frames

T = TypeVar("T")
Argument = TypeVar("Argument")
log = logging.getLogger(__name__)


def run_into(outer: Future[T], work: Callable[[Argument], T | Future[T]], argument: Argument) -> Callable[[], None]:
    """Do the work with its argument; the returned function gives `outer` what came of it.

    What fails beside the core's handling of events was only looking: it fails alone.
    """
    failure: Exception
    try:
        result = work(argument)
    except EventFailed:
        raise
    except RequestError as error:
        failure = without_frames(error)
    except Exception as error:  # noqa: BLE001 - whatever it was, it is one caller's trouble and not everybody's
        failure = logged(getattr(work, "__qualname__", "a call"), error)
    else:
        return _result_into(outer, result)
    return lambda: _settle(outer, lambda: outer.set_exception(failure))


def _result_into(outer: Future[T], result: T | Future[T]) -> Callable[[], None]:
    if isinstance(result, Future):
        return lambda: _chain(result, outer)
    return lambda: _settle(outer, lambda: outer.set_result(result))


def _chain(inner: Future[T], outer: Future[T]) -> None:
    inner.add_done_callback(lambda done: _copy(done, outer))
    # A caller that is gone no longer waits. Weakly: a circle of the two would stay until garbage is collected.
    outer.add_done_callback(partial(_cancel_too, weakref.ref(inner)))


def _cancel_too(inner: weakref.ref[Future[T]], outer: Future[T]) -> None:
    waiting = inner()
    if outer.cancelled() and waiting is not None:
        waiting.cancel()


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
