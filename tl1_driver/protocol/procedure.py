"""Procedures: operations of a dialect in several steps, without a socket or clock.

A procedure is a generator. It yields commands and pauses; the caller sends each command and passes in the answer that
confirms it, or throws the error of the command into the generator. So a dialect can check before it acts, poll, and
undo, and tests need no switch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tl1_driver.protocol.errors import UnconfirmedCommandError
from tl1_driver.protocol.messages import Response, Tl1Command

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    """A request to continue after `seconds`."""

    seconds: float


Step = Tl1Command | Pause
Procedure = Generator[Step, Any, T]
"""A generator that receives the `Response` to each `Tl1Command` it yields, None after a `Pause`, and returns a T."""


def confirmed(command: Tl1Command) -> Procedure[Response]:
    """Send `command` and return the answer that confirms it; an acknowledgment may replace it."""
    response: Response = yield command
    return response


def all_confirmed(commands: Iterable[Tl1Command]) -> Procedure[None]:
    """Send `commands` one after the other until each is confirmed."""
    for command in commands:
        yield from confirmed(command)


def answer(command: Tl1Command) -> Procedure[Response]:
    """Send a read command and return its answer.

    Raises `UnconfirmedCommandError` if the switch only acknowledged it.
    """
    response = yield from confirmed(command)
    if response.code != "COMPLD":
        raise UnconfirmedCommandError(f"the switch acknowledged {command.verb} but sent no answer")
    return response


def rows(command: Tl1Command) -> Procedure[list[str]]:
    """Send a read command and return the rows of its answer, without comments. Raises as `answer` does."""
    response = yield from answer(command)
    return [line for line in response.lines if not line.startswith("/*")]


def pause(seconds: float) -> Procedure[None]:
    """Wait for `seconds`."""
    yield Pause(seconds)
