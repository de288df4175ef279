"""Several controllers on a virtual clock: whatever befalls them, nothing is lost or done twice; seeded bugs show.

Simulations run in a process of their own: what they end like a killed process would trouble the tests that come after.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.soak.controllers import ROUNDS, course, is_found, play
from tests.support.succession.seeded_bugs import BUGS, doubt_forgotten, undurable_told

EPISODES = 25
ENOUGH = 250
"""Episodes within which seeded bugs are found; most need a few."""
BY_HAND = (undurable_told, doubt_forgotten)
"""They need hundreds of episodes each, some ten minutes: `is_found("doubt_forgotten", 2500)`."""


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as one:
        yield one


@pytest.mark.parametrize("seed", range(EPISODES))
def test_all_is_well_after_every_fault(process, seed):
    found = process.submit(play, 1_000_000 + seed).result()
    assert found.failure is None, f"scripts/soak --only controllers --trace --seed {1_000_000 + seed}"


def test_the_same_seed_is_the_same_course_of_events(process):
    one, other = (process.submit(course, 7).result() for _ in range(2))
    assert one == other and len(one) > ROUNDS


@pytest.mark.test_all
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [bug.__name__ for bug in BUGS if bug not in BY_HAND])
def test_a_seeded_bug_is_found(process, name):
    assert process.submit(is_found, name, ENOUGH).result(), name
