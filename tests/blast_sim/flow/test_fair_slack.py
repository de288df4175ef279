"""Finish times do not change when the solver omits links with slack."""

from __future__ import annotations

import numpy as np
import pytest

from blast_sim.fair import Paths, finish_times

pytestmark = pytest.mark.numba

SERVERS, RACKS = 60, 4


def flows(uplink: float) -> tuple[np.ndarray, Paths, np.ndarray, np.ndarray]:
    """Return enough random transfers to classify the links several times; some start later."""
    from blast_sim.fair.fluid_numba import FRESH

    dice = np.random.default_rng(3)
    count = 4 * FRESH
    sources, targets = dice.integers(0, SERVERS, count), dice.integers(0, SERVERS, count)
    room = np.repeat([10.0, uplink], [2 * SERVERS, 2 * RACKS])
    table = [
        sources, SERVERS + targets, 2 * SERVERS + sources % RACKS, 2 * SERVERS + RACKS + targets % RACKS,
    ]  # fmt: skip
    starts = np.where(dice.random(count) < 0.5, 0.0, dice.uniform(0.0, 20.0, count))
    return room, Paths.rows(np.stack(table, axis=1)), dice.uniform(1.0, 50.0, count), starts


@pytest.mark.parametrize("uplink", [5.0, 60.0, 1000.0], ids=["uplinks hold", "either holds", "servers hold"])
def test_finish_times_are_independent_of_the_links_with_slack(uplink: float) -> None:
    room, paths, bits, starts = flows(uplink)
    before = paths.links.copy()
    ours = finish_times(room, paths, bits, starts=starts, solver="numba")
    assert (paths.links == before).all()
    assert ours == pytest.approx(finish_times(room, paths, bits, starts=starts, solver="numpy"), rel=1e-9)


def test_path_with_a_link_twice_uses_it_twice() -> None:
    paths = Paths.of([[0, 0, 1], [0, 2], [1, 2]] * 128)
    bits = np.linspace(1.0, 9.0, len(paths))
    room = [10.0, 10.0, 1000.0]
    both = [finish_times(room, paths, bits, solver=solver) for solver in ("numba", "numpy")]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
