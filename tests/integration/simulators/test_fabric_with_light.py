"""One multicast over fabric, light or both: a rack is simulated, and light agrees with the flow simulator."""

from __future__ import annotations

import pytest

from blast_sim.base.sweep import Kept, Workers
from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.fabric.simulator import Simulator, program
from blast_sim.papers.rack_fabric.with_light import (
    BOTH,
    FABRIC,
    LIGHT,
    OpticalTrial,
    light_of_figure_four,
    rows_of,
    runs_of,
    simulated,
    trials,
)
from blast_sim.scenarios.loading import find, load


@pytest.mark.parametrize("racks", [2, 8])
def test_completion_on_idle_network_equals_flow_simulator(racks: int) -> None:
    run = {"methods": ["blast"], "networks": ["10:1"], "backgrounds": ["none"], "policies": ["paper"]}
    settings = {"multicasts.groups": 1, "multicasts.racks_per_group": racks, "run": [run]}
    (cell,) = cells_of(load(find("fig4"), settings), (0,), Effort("recorded"))
    (theirs,) = run_cell(cell)
    assert theirs["fell_back"] == 0
    trial = OpticalTrial(LIGHT, cell.scenario.light.rate_gbps, racks)
    (unicast,) = runs_of([trial])
    idle = {"name": "unicast", "offered_frames": 1, "destinations": [{"copies": 1, "mean_delay_ns": 1.0}]}
    found = {unicast: {"flows": [idle], "series": {"fullest_ingress_packets": [0] * 200}}}
    (ours,) = rows_of([trial], found, light_of_figure_four())
    assert ours["completion_s"] == pytest.approx(theirs["seconds"], rel=1e-9)


@pytest.mark.rust
def test_one_rack_over_fabric_light_and_both() -> None:
    requested, light = list(trials((1,))), light_of_figure_four()
    found = simulated(runs_of(requested), Simulator(program()), Workers(2), Kept(None))
    rows = {(row["way"], row["light_gbps"]): row for row in rows_of(requested, found, light)}
    fabric, slow, fast = rows[FABRIC, None], rows[BOTH, 10.0], rows[BOTH, 100.0]

    # Without unicast no copy waits: only a frame's delay, a few microseconds, is added.
    assert fabric["completion_alone_s"] == pytest.approx(light.seconds(99.0), rel=1e-3)
    for gbps, both in ((10.0, slow), (100.0, fast)):
        assert both["completion_alone_s"] == pytest.approx(rows[LIGHT, gbps]["completion_s"], rel=1e-3)

    # 40 Gb/s of unicast fit beside 10, and not beside 99: the slowest copy gets the remainder, or an equal share.
    assert slow["completion_s"] == pytest.approx(slow["completion_alone_s"], rel=5e-3)
    for row, gbps in ((fabric, 99.0), (fast, 100.0)):
        added = row["completion_s"] - row["completion_alone_s"]
        assert light.seconds(61.5) - light.seconds(gbps) < added < light.seconds(40.0) - light.seconds(gbps)

    for row in rows.values():
        assert row["unicast_share"] > 0.99 and row["unicast_share_alone"] > 0.99
        assert row["unicast_delay_alone_us"] == pytest.approx(2.14, abs=0.1)
    assert slow["unicast_delay_us"] < 1.1 * slow["unicast_delay_alone_us"]
    assert fabric["unicast_delay_us"] > 1.5 * fabric["unicast_delay_alone_us"]
    assert rows[LIGHT, 100.0]["unicast_delay_us"] == rows[LIGHT, 100.0]["unicast_delay_alone_us"]

    assert rows[LIGHT, 10.0]["buffer_alone_kb"] == 0.0
    assert 0 < slow["buffer_alone_kb"] < fast["buffer_alone_kb"] < fast["buffer_kb"] < 185
