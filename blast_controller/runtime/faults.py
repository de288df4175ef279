"""Our own faults that end with one call: logged in full under a trace id, told to the caller by that id alone."""

from __future__ import annotations

import logging
import secrets
from typing import TypeVar

from blast_controller.ops.logging import fields

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Exception)


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
