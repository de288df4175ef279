"""`WaiterIndex` against a list of (waiter, number) that is searched every time."""

from __future__ import annotations

import math

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, rule

from blast_controller.runtime.waiter_index import WaiterIndex

NUMBERS = st.integers(min_value=-2, max_value=8)


class WaiterIndexMachine(RuleBasedStateMachine):
    waiting = Bundle("waiting")

    def __init__(self):
        super().__init__()
        self.index: WaiterIndex[int] = WaiterIndex()
        self.oracle: dict[int, int] = {}
        self.count = 0

    @rule(target=waiting, after=NUMBERS)
    def add(self, after):
        self.count += 1
        self.index.add(self.count, after)
        self.oracle[self.count] = after
        return self.count

    @rule(waiter=consumes(waiting))
    def remove(self, waiter):
        self.index.remove(waiter, self.oracle.pop(waiter))

    @rule(number=st.one_of(NUMBERS, st.just(math.inf)))
    def look(self, number):
        reached = self.index.reached_by(number)
        assert len(reached) == len(set(reached))
        assert set(reached) == {waiter for waiter, after in self.oracle.items() if after < number}
        assert [self.oracle[waiter] for waiter in reached] == sorted(self.oracle[waiter] for waiter in reached)

    @rule()
    def emptiness(self):
        assert bool(self.index) is bool(self.oracle)


TestWaiterIndex = WaiterIndexMachine.TestCase
