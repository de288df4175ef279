"""Several controllers on a virtual clock: whatever befalls them, nothing is lost or done twice; seeded bugs show."""

from __future__ import annotations

import pytest

from tests.property.succession_run import ROUNDS, play
from tests.support.succession.seeded_bugs import BUGS

EPISODES = 25
ENOUGH = 250
"""Episodes within which every seeded bug is found; most need a few, none more than a third of these."""


@pytest.mark.parametrize("seed", range(EPISODES))
def test_all_is_well_after_every_fault(seed):
    assert play(1_000_000 + seed).failure is None, f"succession_run --trace --seed {1_000_000 + seed}"


def test_the_same_seed_is_the_same_course_of_events():
    one, other = list[str](), list[str]()
    play(7, say=one.append)
    play(7, say=other.append)
    assert one == other and len(one) > ROUNDS


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug, monkeypatch):
    bug(monkeypatch)
    assert any(play(seed, faults=BUGS[bug]).failure is not None for seed in range(ENOUGH)), bug.__doc__
