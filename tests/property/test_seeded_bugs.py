"""Does the machine find what is wrong? Every seeded bug must make it fail within a bounded number of episodes."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator

import pytest

from blast_controller.core.model.errors import CoreError
from blast_controller.store.errors import StoreFault
from tests.soak.core import episode
from tests.support.seeded_bugs import BUGS, LEAKS, SEEDS

EPISODES = 300
"""Of 60 steps each; without a bug, these and all later ones pass."""
LOOKS_AT_DEVICES = {"i2_marks_are_journalled", "i3_converges", "i6_who_stays_is_served", "nothing_is_left_on_devices"}


def failures(first: int) -> Iterator[Exception]:
    for seed in (first, *range(EPISODES)):
        try:
            episode(seed, Counter())
        except (AssertionError, CoreError, StoreFault) as error:
            yield error


def found_on_devices(error: Exception) -> bool:
    return any(frame.name in LOOKS_AT_DEVICES for frame in traceback.extract_tb(error.__traceback__))


@pytest.mark.test_all
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak must be found where it is, on devices, whatever else shows it first."""
    BUGS[name](monkeypatch)
    assert any(name not in LEAKS or found_on_devices(error) for error in failures(SEEDS.get(name, 0))), (
        f"the machine has not noticed: {BUGS[name].__doc__}"
    )
