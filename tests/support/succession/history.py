"""Calls and answers of clients about a request, and its specification: the object whose histories are checked.

A request is independent of all others. By itself it proceeds: it is granted, loses its grant, ends; each such event is
numbered, and its state after an event is the same for all clients. An acknowledged request does not become unknown, and
an ended one stays ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.support.controller.linearizability import Operation, Verdict, check


@dataclass(frozen=True)
class Reading:
    """A request after event number `event`: whether it `is_over` or `is_done`, its reservation and address."""

    event: int
    is_over: bool
    is_done: bool
    grants: tuple[tuple[int, str], ...]


class Asked(NamedTuple):
    """A submission, maybe repeated with the same key; None: no answer."""

    reading: Reading | None


class Looked(NamedTuple):
    """A status call; None: unknown."""

    reading: Reading | None


class EventReceived(NamedTuple):
    """A client has received an event of it."""

    sequence: int


class Finished(NamedTuple):
    """The request is finished, also by a repeated call; None: no answer."""

    reading: Reading | None


class RefusedToFinish(NamedTuple):
    """The finish came too late: the request had ended otherwise."""


Call = Asked | Looked | EventReceived | Finished | RefusedToFinish


@dataclass(frozen=True)
class State:
    """The state of a request: `reading` is that after event number `event`, None before the first reading."""

    is_there: bool = False
    is_over: bool = False
    event: int = 0
    reading: Reading | None = None


ABSENT = State()


def step(state: State, call: Call) -> list[State]:
    """Return the possible states of a request after a call with this answer."""
    match call:
        case Asked(None):
            return [replace(state, is_there=True)]
        case Asked(Reading() as reading):
            return _read(replace(state, is_there=True), reading)
        case Looked(None):
            return [] if state.is_there else [state]
        case Looked(Reading() as reading):
            return _read(state, reading) if state.is_there else []
        case EventReceived(sequence):
            if not state.is_there or (state.is_over and state.reading is not None and state.event < sequence):
                return []
            return [state] if state.event >= sequence else [replace(state, event=sequence, reading=None)]
        case Finished(None):
            return [_over(state)] if state.is_there else []
        case Finished(Reading() as reading):
            return _read(state, reading) if state.is_there and reading.is_done else []
        case RefusedToFinish():
            # It may have ended by itself just before.
            was_done = state.reading is not None and state.reading.is_done
            return [_over(state)] if state.is_there and not was_done else []
    raise AssertionError(call)


def _over(state: State) -> State:
    return state if state.is_over else State(True, True, state.event + 1)


def _read(state: State, reading: Reading) -> list[State]:
    if state.is_over and not reading.is_over:
        return []
    if state.reading is not None and reading.event == state.event:
        return [state] if reading == state.reading else []
    if reading.event < state.event or (state.is_over and state.reading is not None):
        return []
    return [State(True, reading.is_over, reading.event, reading)]


def verdict(operations: list[Operation[Call]]) -> Verdict[Call]:
    """Check whether the answers about one request are possible."""
    # A request only moves forward: a repeated call changes nothing.
    return check(operations, ABSENT, step, lambda call: True)
