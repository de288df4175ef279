"""Transfer of a result to the future of its caller, who may have disconnected."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import TypeVar

from blast_controller.core.model.errors import RequestError
from blast_controller.runtime.faults import EventFailedError, logged, without_frames

T = TypeVar("T")
Argument = TypeVar("Argument")
log = logging.getLogger(__name__)


def run_into(outer: Future[T], work: Callable[[Argument], T | Future[T]], argument: Argument) -> Callable[[], None]:
    """Do the work with its argument; the returned function sets the result of `outer`.

    A failure outside the core's handling of events affects only this read.
    """
    failure: Exception
    try:
        result = work(argument)
    except EventFailedError:
        raise
    except RequestError as error:
        failure = without_frames(error)
    except Exception as error:  # noqa: BLE001 - the failure concerns one caller only
        failure = logged(getattr(work, "__qualname__", "a call"), error)
    else:
        if isinstance(result, Future):
            return partial(_chain, result, outer)
        return partial(_settle, outer.set_result, result)
    return partial(_settle, outer.set_exception, failure)


def _chain(inner: Future[T], outer: Future[T]) -> None:
    if inner.done():
        _copy(outer, inner)
        return
    inner.add_done_callback(partial(_copy, outer))
    # A caller that is gone no longer waits. Weakly: a circle of the two would stay until garbage is collected.
    outer.add_done_callback(partial(_cancel_too, weakref.ref(inner)))


def _cancel_too(inner: weakref.ref[Future[T]], outer: Future[T]) -> None:
    waiting = inner()
    if outer.cancelled() and waiting is not None:
        waiting.cancel()


def _copy(outer: Future[T], inner: Future[T]) -> None:
    if inner.cancelled():
        return
    error = inner.exception()
    if error is not None:
        _settle(outer.set_exception, error)
    else:
        _settle(outer.set_result, inner.result())


def _settle(settle: Callable[[Argument], None], outcome: Argument) -> None:
    try:
        settle(outcome)
    except InvalidStateError:
        log.debug("the caller disconnected")
