"""Internal faults: of one call, reported to its caller by a trace id only, and of the whole process."""

from __future__ import annotations

import logging
import secrets
from types import TracebackType
from typing import TypeVar

from blast_controller.core.model.errors import RequestError
from blast_controller.ops.logging import fields

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Exception)


class EventFailedError(Exception):
    """Our fault: the core could not handle an event, and nothing that it knows may be trusted any further."""


class InternalError(Exception):
    """Our fault: one call could not be answered. It has changed nothing, and the controller goes on."""

    def __init__(self, action: str, trace: str) -> None:
        super().__init__(
            f"internal error in {action}: nothing changed and the controller continues to run; see trace {trace} in "
            "its log"
        )
        self.trace = trace


def logged(action: str, error: BaseException) -> InternalError:
    """Log an unexpected error and return the error for its caller. One that was logged before stays."""
    if isinstance(error, InternalError):
        return error
    trace = secrets.token_hex(4)
    log.error("%s failed (trace %s)", action, trace, exc_info=error, extra=fields(event="fault", trace=trace))
    return InternalError(action, trace)


def without_frames(error: E) -> E:
    """Remove the traceback of an expected error.

    Its frames refer to the caller's future, which refers to the error: only the garbage collector would free this
    cycle, and a collection stops the controller.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


class action_errors:  # noqa: N801 - a context manager like those of contextlib
    """Add the core's current action to an unexpected error. Raises RequestError unchanged, else EventFailedError."""

    __slots__ = ("_action",)

    def __init__(self, action: str) -> None:
        self._action = action

    def __enter__(self) -> None:
        """Begin the action."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Convert the error of the action, if any."""
        if isinstance(error, Exception) and not isinstance(error, RequestError):
            raise EventFailedError(f"{self._action} failed: {type(error).__name__}: {error}") from error
