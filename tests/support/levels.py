"""The levels of tests: `test` for every contributor, `all` for every test with a verdict in minutes.

Unit, property and fuzz tests belong to `test` unless they are marked `test_all`; integration tests belong to `all`
unless they are marked `component`, one per promise of a real component. Tests that need more than the set-up of `make
test` always belong to `all`. The level `all` contains `test`. Tests that gain from time belong to `make soak`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from enum import Enum

import hypothesis
import pytest

from tests.support.needs import NEEDS

EXAMPLES_SHARE, MIN_EXAMPLES = 0.3, 10
"""Of the examples of each property test, how many the level `test` draws; the level `all` draws all of them."""


class Level(Enum):
    """A value of `--level`."""

    TEST = "test"
    ALL = "all"


def level_of(file: str, markers: Iterable[str]) -> Level:
    """Return the lowest level that runs a test of this file with these markers."""
    names = set(markers)
    if "test_all" in names or any(need.name in names and not need.with_test for need in NEEDS):
        return Level.ALL
    return Level.ALL if file.startswith("tests/integration/") and "component" not in names else Level.TEST


def select(asked: Level, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the level that is asked for, and the others."""
    kept, others = [], []
    for item in items:
        level = level_of(item.nodeid.partition("::")[0], (mark.name for mark in item.iter_markers()))
        (kept if asked is Level.ALL or level is Level.TEST else others).append(item)
    return kept, others


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffle the files, and the tests within each; the order depends on the seed only."""
    chance = random.Random(seed)
    of_file: dict[str, list[pytest.Item]] = {}
    for item in items:
        of_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
    groups = list(of_file.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    items[:] = [item for group in groups for item in group]


def draw_fewer_examples(items: Iterable[pytest.Item]) -> None:
    """Reduce the examples of property tests and state machines to the share of the level `test`."""
    reduced = set()
    for item in items:
        test = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
        machine = getattr(item, "cls", None)
        if machine is not None and isinstance(getattr(machine, "settings", None), hypothesis.settings):
            if machine not in reduced:
                machine.settings = _fewer(machine.settings)
            reduced.add(machine)
        elif isinstance(used := getattr(test, "_hypothesis_internal_use_settings", None), hypothesis.settings):
            if test not in reduced:
                test._hypothesis_internal_use_settings = _fewer(used)
            reduced.add(test)


def _fewer(used: hypothesis.settings) -> hypothesis.settings:
    share = max(math.ceil(used.max_examples * EXAMPLES_SHARE), MIN_EXAMPLES)
    return hypothesis.settings(used, max_examples=min(share, used.max_examples))
