"""What clients asked and heard about a request, and what a request may do: the object whose histories are checked.

A request is independent of all others. By itself it goes on: it is granted, loses its light, ends; each such event is
numbered, and what it is after an event is the same for everybody. What was acknowledged stays: once it is there it is
not unknown again, and once it has ended it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.support.linearizability import Operation, Verdict, check


@dataclass(frozen=True)
class Reading:
    """A request after event `told`: whether it `is_over`, by `is_done`, and its light, by reservation and address."""

    told: int
    is_over: bool
    is_done: bool
    grants: tuple[tuple[int, str], ...]


class Asked(NamedTuple):
    """Asked for, or asked for again with the same key; None: no answer."""

    reading: Reading | None


class Looked(NamedTuple):
    """Looked at; None: unknown."""

    reading: Reading | None


class Heard(NamedTuple):
    """An event of it has come."""

    sequence: int


class Finished(NamedTuple):
    """Given back, which twice is the same as once; None: no answer."""

    reading: Reading | None


class RefusedToFinish(NamedTuple):
    """Given back too late: it had ended otherwise."""


Call = Asked | Looked | Heard | Finished | RefusedToFinish


@dataclass(frozen=True)
class State:
    """A request: `reading` is what it is after event `told`, None where nobody has looked yet."""

    is_there: bool = False
    is_over: bool = False
    told: int = 0
    reading: Reading | None = None


ABSENT = State()


def step(state: State, call: Call) -> list[State]:
    """What a request may be after a call with this answer."""
    match call:
        case Asked(None):
            return [replace(state, is_there=True)]
        case Asked(Reading() as reading):
            return _read(replace(state, is_there=True), reading)
        case Looked(None):
            return [] if state.is_there else [state]
        case Looked(Reading() as reading):
            return _read(state, reading) if state.is_there else []
        case Heard(sequence):
            if not state.is_there or (state.is_over and state.reading is not None and state.told < sequence):
                return []
            return [state] if state.told >= sequence else [replace(state, told=sequence, reading=None)]
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
    return state if state.is_over else State(True, True, state.told + 1)


def _read(state: State, reading: Reading) -> list[State]:
    if state.is_over and not reading.is_over:
        return []
    if state.reading is not None and reading.told == state.told:
        return [state] if reading == state.reading else []
    if reading.told < state.told or (state.is_over and state.reading is not None):
        return []
    return [State(True, reading.is_over, reading.told, reading)]


def verdict(operations: list[Operation[Call]]) -> Verdict[Call]:
    """Whether what was heard of one request can be."""
    # A request only ever goes on: what it was asked once changes nothing the second time.
    return check(operations, ABSENT, step, lambda call: True)
