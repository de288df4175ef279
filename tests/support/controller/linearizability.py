"""A check of linearizability: an order of a history in which each call takes effect at once, before its answer.

Wing & Gong, "Testing and Verifying Concurrent Objects" (1993), with a memory of tried states (Lowe, "Testing for
linearizability", 2017): two orders of the same calls that reach the same state continue alike.

A call without an answer may take effect at any later time, or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Call = TypeVar("Call")
MAX_STEPS = 2_000_000


@dataclass(frozen=True)
class Operation(Generic[Call]):
    """A call and its answer with their times; `end` is infinite without an answer."""

    call: Call
    begin: float
    end: float = math.inf

    @property
    def is_answered(self) -> bool:
        """Return True if the call must have taken effect."""
        return self.end < math.inf


class SearchLimitError(Exception):
    """The number of orders exceeds the limit of the search."""


Next = Callable[[State, Call], Iterable[State]]
"""The states after a call with its answer; none if the answer is impossible in this state."""


@dataclass
class Verdict(Generic[Call]):
    """The result: `order` explains the history, or is the longest order found, and then `stuck` has the next calls."""

    is_linearizable: bool
    order: Sequence[Operation[Call]] = ()
    stuck: Sequence[Operation[Call]] = field(default_factory=list)

    def __str__(self) -> str:
        if self.is_linearizable:
            return "linearizable"
        lines = ["no order explains the history; the longest that was found:"]
        lines += [f"  {one.begin:.4f} – {one.end:.4f} {one.call}" for one in self.order]
        lines += ["and none of these may follow:"]
        lines += [f"  {one.begin:.4f} – {one.end:.4f} {one.call}" for one in self.stuck]
        return "\n".join(lines)


def check(
    history: Iterable[Operation[Call]],
    start: State,
    step: Next[State, Call],
    is_settled: Callable[[Call], bool] = lambda call: False,
) -> Verdict[Call]:
    """Search an order that explains the history, from the state `start` on. Raises SearchLimitError.

    `is_settled` is for calls that, once they change nothing, change nothing later either, as all that only read: the
    search executes them as soon as possible, which saves most of its time.
    """
    operations = sorted(history, key=lambda one: one.begin)
    required = sum(1 << number for number, one in enumerate(operations) if one.is_answered)
    seen: set[tuple[int, State]] = set()
    best: tuple[int, ...] = ()
    stack: list[tuple[int, State, tuple[int, ...]]] = [(0, start, ())]
    steps = 0
    while stack:
        done, state, order = stack.pop()
        if done & required == required:
            return Verdict(True, [operations[number] for number in order])
        best = max(best, order, key=len)
        possible = [(number, list(step(state, operations[number].call))) for number in _possible(operations, done)]
        steps += len(possible)
        if steps > MAX_STEPS:
            raise SearchLimitError(f"more than {MAX_STEPS} steps for {len(operations)} calls")
        for number, states in reversed(_choices(operations, possible, state, is_settled)):
            for after in states:
                reached = (done | 1 << number, after)
                if reached not in seen:
                    seen.add(reached)
                    stack.append((*reached, (*order, number)))
    left = [one for number, one in enumerate(operations) if number not in best and one.is_answered]
    return Verdict(False, [operations[number] for number in best], left[:10])


def _choices(
    operations: Sequence[Operation[Call]],
    possible: Sequence[tuple[int, list[State]]],
    state: State,
    is_settled: Callable[[Call], bool],
) -> Sequence[tuple[int, list[State]]]:
    """Return the choices: settled calls only, executed if they must take effect, and left out if not."""
    settled = {number for number, states in possible if states == [state] and is_settled(operations[number].call)}
    for number, states in possible:
        if number in settled and operations[number].is_answered:
            return [(number, states)]
    return [(number, states) for number, states in possible if number not in settled]


def _possible(operations: Sequence[Operation[Call]], done: int) -> list[int]:
    """Return the calls that may be next: calls that began before the answer to any other remaining call."""
    first_end = math.inf
    found = []
    for number, one in enumerate(operations):
        if done >> number & 1:
            continue
        if one.begin > first_end:
            break
        first_end = min(first_end, one.end)
        found.append(number)
    return [number for number in found if operations[number].begin <= first_end]
