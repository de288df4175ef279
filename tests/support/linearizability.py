"""Whether a history of calls can be put into an order in which each took effect at once, between its call and answer.

Wing & Gong, "Testing and Verifying Concurrent Objects" (1993), with what was tried before remembered (Lowe, "Testing
for linearizability", 2017): two ways to the same calls done and the same state go on alike.

A call without an answer may have taken effect at any time since, or never.
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
    """What was asked and answered, from when to when; `end` is infinite where no answer came."""

    call: Call
    begin: float
    end: float = math.inf

    @property
    def is_answered(self) -> bool:
        """Whether it must have taken effect."""
        return self.end < math.inf


class TooLong(Exception):
    """There are too many orders to be tried."""


Next = Callable[[State, Call], Iterable[State]]
"""What a state may become by a call with its answer; nothing where it could not have had that answer."""


@dataclass
class Verdict(Generic[Call]):
    """`order` is one that explains the history; where there is none, the longest found, and who are `stuck`."""

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
    """Whether there is such an order, from `start` on. Raises TooLong.

    `is_settled` is for calls that, once they change nothing, would change nothing later either, as all that only reads:
    they are done as soon as they can be, which saves most of the search.
    """
    operations = sorted(history, key=lambda one: one.begin)
    wanted = sum(1 << number for number, one in enumerate(operations) if one.is_answered)
    seen: set[tuple[int, State]] = set()
    best: tuple[int, ...] = ()
    stack: list[tuple[int, State, tuple[int, ...]]] = [(0, start, ())]
    steps = 0
    while stack:
        done, state, order = stack.pop()
        if done & wanted == wanted:
            return Verdict(True, [operations[number] for number in order])
        best = max(best, order, key=len)
        possible = [(number, list(step(state, operations[number].call))) for number in _possible(operations, done)]
        steps += len(possible)
        if steps > MAX_STEPS:
            raise TooLong(f"more than {MAX_STEPS} steps for {len(operations)} calls")
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
    """What is to be tried: what is settled is done at once if it must be done, and left out if not."""
    settled = {number for number, states in possible if states == [state] and is_settled(operations[number].call)}
    for number, states in possible:
        if number in settled and operations[number].is_answered:
            return [(number, states)]
    return [(number, states) for number, states in possible if number not in settled]


def _possible(operations: Sequence[Operation[Call]], done: int) -> list[int]:
    """What may come next: whatever was called before any other that is left was answered."""
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
