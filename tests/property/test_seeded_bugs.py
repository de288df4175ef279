"""Does the machine find what is wrong? Every seeded bug must make it fail within a bounded number of episodes."""

from __future__ import annotations

import traceback
from collections import Counter

import pytest

from blast_controller.core.errors import CoreError
from blast_controller.store.errors import StoreFault
from tests.property.long_run import episode
from tests.support.seeded_bugs import BUGS, LEAKS

EPISODES = 300
"""Of 60 steps each; without a bug, these and all later ones pass."""


def first_failure() -> Exception | None:
    for seed in range(EPISODES):
        try:
            episode(seed, Counter())
        except (AssertionError, CoreError, StoreFault) as error:
            return error
    return None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[name](monkeypatch)
    error = first_failure()
    assert error is not None, f"the machine has not noticed: {BUGS[name].__doc__}"
    if name in LEAKS:
        frames = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
        looks_at_devices = {"i2_marks_are_journalled", "i3_converges", "i6_who_stays_is_served"}
        assert frames & {*looks_at_devices, "nothing_is_left_on_devices"}, frames
