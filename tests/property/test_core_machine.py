"""The core, its journal and its devices under Hypothesis: see `tests/support/core_machine.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.core_machine import ACTIONS, CoreMachine
from tests.support.dice import HypothesisDice


class CoreAndDevices(RuleBasedStateMachine):
    machine: CoreMachine | None = None

    @initialize(data=strategies.data())
    def begin(self, data: Any) -> None:
        self.machine = CoreMachine(HypothesisDice(data))

    @invariant()
    def holds(self) -> None:
        if self.machine is not None:
            self.machine.check()

    def teardown(self) -> None:
        if self.machine is not None:
            self.machine.finish()


def _rule(name: str) -> Callable[..., None]:
    def act(self: CoreAndDevices, data: Any) -> None:
        getattr(self.machine, name)(HypothesisDice(data))

    act.__name__ = name
    enabled = precondition(lambda self: self.machine is not None and self.machine.enabled(name))
    return enabled(rule(data=strategies.data())(act))  # type: ignore[return-value]


for action in ACTIONS:
    setattr(CoreAndDevices, action, _rule(action))

TestCoreAndDevices = CoreAndDevices.TestCase
TestCoreAndDevices.settings = settings(max_examples=500, stateful_step_count=50, deadline=None)
