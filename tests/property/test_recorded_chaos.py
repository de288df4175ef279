"""A recorded chaos run: moments of it come back as they were noted, from the file and by living through it again."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from blast_controller.core.controller import Core
from blast_controller.moments.encoder import all_rows
from blast_controller.recording import writer
from blast_controller.recording.reader import Reader
from tests.soak.core import episode
from tests.support.recorded_machine import RecordedMachine, Tape

MOMENTS = 1_000
EPISODES = range(10_000)


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Tape:
    """Of so many episodes that there are more moments than are looked at."""
    found = Tape(Path(tmp_path_factory.mktemp("chaos")) / "recording.sqlite")
    with pytest.MonkeyPatch.context() as small:
        small.setattr(writer, "BLOCK_BYTES", 1 << 15)
        small.setattr(writer, "NETS_PER_BASE", 1.0)
        for seed in EPISODES:
            episode(seed, Counter(), make=lambda dice, counts: RecordedMachine(found, dice, counts))
            if len(found.noted) > MOMENTS + 200:
                break
        found.end()
    return found


def test_the_run_is_one_worth_looking_at(tape):
    kinds = Counter(name.partition("/")[0] for rows in tape.noted for name in rows)
    assert set(kinds) == {"fabric", "request", "tree", "unit", "away", "warm"}
    assert len(tape.noted) > MOMENTS and tape.lives > 10


def test_a_thousand_random_moments_are_in_the_file_as_they_were_noted(tape):
    reader = Reader(tape.path)
    assert reader.span().newest.sequence == len(tape.noted)
    dice = random.Random(1)
    for sequence in dice.sample(range(1, len(tape.noted) + 1), MOMENTS):
        past = reader.moment(sequence)
        assert past.rows == tape.noted[sequence - 1], sequence
        assert past.wall == pytest.approx(tape.walls[sequence - 1], abs=1e-6)
    for wall in dice.sample(tape.walls, 100):
        last = max(place for place, other in enumerate(tape.walls) if round(other * 1e6) <= round(wall * 1e6))
        assert reader.at(wall).rows == tape.noted[last]
    reader.close()


def test_another_core_that_is_told_the_same_shows_the_same_at_every_moment(tape):
    """A start is given what the journal held then."""
    compared, core = 0, None
    for deed, arguments, latest in tape.inputs:
        if deed == "life":
            core = Core(*arguments)
            continue
        getattr(core, deed)(*arguments)
        if deed != "take":
            assert all_rows(core.snapshot) == tape.noted[latest - 1], latest
            compared += 1
    assert compared >= len(tape.noted)
