"""Procedures: what a dialect does in several steps, without a socket or clock.

A procedure is a generator. It yields commands and pauses; whoever runs it sends each command and gives back the
answer that confirms it, or throws in the error that the command came to. So a dialect can look before it acts, poll,
and undo, and is tested with answers written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tl1_driver.errors import NotConfirmed
from tl1_driver.messages import Command, Response

T = TypeVar("T")

_FIRST_PAUSE = 0.05
"""Seconds; each pause is twice the one before."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Go on after so many seconds."""

    seconds: float


Step = Command | Pause
Procedure = Generator[Step, Any, T]
"""Gets the `Response` to each `Command` it yields, None after a `Pause`, and returns a T."""


def confirmed(command: Command) -> Procedure[Response]:
    """The answer that confirms `command`; an acknowledgment may stand for it."""
    response: Response = yield command
    return response


def all_confirmed(commands: Iterable[Command]) -> Procedure[None]:
    """`commands`, one after the other."""
    for command in commands:
        yield from confirmed(command)


def answer(command: Command) -> Procedure[Response]:
    """The answer to a command that reads. Raises `NotConfirmed` if the switch only acknowledged it."""
    response = yield from confirmed(command)
    if response.code != "COMPLD":
        raise NotConfirmed(f"the switch acknowledged {command.verb} and sent nothing")
    return response


def rows(command: Command) -> Procedure[list[str]]:
    """The rows of the answer to a command that reads, comments left out. Raises `NotConfirmed` as `answer` does."""
    response = yield from answer(command)
    return [line for line in response.lines if not line.startswith("/*")]


def pause(seconds: float) -> Procedure[None]:
    """Nothing for so many seconds."""
    yield Pause(seconds)


def settled(read: Callable[[], Procedure[T]], is_settled: Callable[[T], bool], seconds: float) -> Procedure[T]:
    """Read until what was read is settled, or for about so many seconds; return the last reading.

    A switch may list a change only some time after it has confirmed it.
    """
    waited, next_pause = 0.0, _FIRST_PAUSE
    while not is_settled(found := (yield from read())) and waited < seconds:
        yield Pause(next_pause)
        waited, next_pause = waited + next_pause, 2 * next_pause
    return found
