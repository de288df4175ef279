"""The core, its journal and its devices under Hypothesis: see `tests/support/controller/core_machine.py`."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.soak.core import episode
from tests.support.controller.core_machine import ACTIONS, CoreMachine
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

TestCoreAndDevices = pytest.mark.timeout(1200)(CoreAndDevices.TestCase)
TestCoreAndDevices.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)
"""Of about 40 steps each."""


@pytest.mark.parametrize("first", [0, pytest.param(30, marks=pytest.mark.test_all)])
def test_invariants_hold_in_seeded_episodes(first: int) -> None:
    """The same machine without Hypothesis, which makes it ten times faster."""
    for seed in range(first, first + 30):
        episode(seed, Counter())


CLOCKS_AND_CHANCE = {"time", "datetime", "random", "secrets", "uuid", "os", "socket", "threading", "asyncio"}


def test_core_imports_no_clock_and_no_randomness() -> None:
    """Time reaches the core as `now` only, so no clock jump can end a lease; randomness reaches it as a generator."""
    sources = [file for name in ("blast_controller.core.controller", "algorithms") for file in _sources(name)]
    assert len(sources) > 20
    for source in sources:
        tree = ast.parse(source.read_text())
        # A generator that the caller creates and seeds is deterministic.
        drawn = [n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and _is_random(n.value)]
        known = CLOCKS_AND_CHANCE - ({"random"} if set(drawn) == {"Random"} else set())
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & known, source


def _is_random(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "random"


def _sources(module: str) -> list[Path]:
    __import__(module)
    return sorted(Path(str(sys.modules[module].__file__)).parent.rglob("*.py"))
