"""Our own faults: those that end one call, told to its caller by a trace id alone, and those that end everything."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from blast_controller.core.model.errors import RequestError
from blast_controller.ops.logging import fields

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Exception)


class EventFailed(Exception):
    """Our fault: the core could not handle an event, and nothing that it knows may be trusted any further."""


class InternalFault(Exception):
    """Our fault: one call could not be answered. It has changed nothing, and the controller goes on."""

    def __init__(self, what: str, trace: str) -> None:
        super().__init__(
            f"internal error in {what}: nothing has changed and the controller goes on; "
            f"its operator finds what happened in the log under the trace {trace}"
        )
        self.trace = trace


def logged(what: str, error: BaseException) -> InternalFault:
    """Write an unexpected error to the log; returns what its caller is told. One that was logged before stays."""
    if isinstance(error, InternalFault):
        return error
    trace = secrets.token_hex(4)
    log.error("%s failed (trace %s)", what, trace, exc_info=error, extra=fields(event="fault", trace=trace))
    return InternalFault(what, trace)


def without_frames(error: E) -> E:
    """An expected error without the way that it took.

    The frames would hold whoever is told of it, who holds the error: memory that only a collection of garbage gives
    back, and that stops the controller.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Say of an unexpected error what the core was at. Raises RequestError as it is, else EventFailed."""
    try:
        yield
    except RequestError:
        raise
    except Exception as error:
        raise EventFailed(f"{what} could not be handled: {type(error).__name__}: {error}") from error
