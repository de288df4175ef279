"""The core, its journal and its devices under Hypothesis: see `tests/support/core_machine.py`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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

TestCoreAndDevices = pytest.mark.timeout(600)(CoreAndDevices.TestCase)
TestCoreAndDevices.settings = settings(max_examples=560, stateful_step_count=50, deadline=None)
"""Above 20,000 steps."""

CLOCKS_AND_CHANCE = {"time", "datetime", "random", "secrets", "uuid", "os", "socket", "threading", "asyncio"}


def test_the_core_has_no_clock_to_jump_and_no_chance() -> None:
    """Time reaches the core as `now` only, so that no jump of the wall clock can end a lease."""
    sources = [file for name in ("blast_controller.core.controller", "algorithms") for file in _sources(name)]
    assert len(sources) > 20
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & CLOCKS_AND_CHANCE, source


def _sources(module: str) -> list[Path]:
    __import__(module)
    return sorted(Path(str(sys.modules[module].__file__)).parent.rglob("*.py"))
