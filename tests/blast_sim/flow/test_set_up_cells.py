"""IP multicast compared with Blast: simulated times agree with the computed break-even setup times."""

from __future__ import annotations

import pytest

from blast_sim.controller.compute import recorded
from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.papers.blast.set_up_cells import LINE_GBPS, MEGABYTES, RATES_GBPS, SET_UPS_MS, against_set_up, equals
from blast_sim.scenarios.loading import find, load


@pytest.fixture(scope="module")
def rows():
    simulated = [(cell, row) for cell in against_set_up(True) for row in run_cell(cell)]
    return [{**cell.labels, **row} for cell, row in simulated]


def test_break_even_setup_at_line_rate_equals_that_of_blast(rows) -> None:
    """It is 25 ms of the optical switch and the computation, for every size."""
    own = 25.0 + 1000 * recorded(120, 36)
    found = [one for one in equals(rows) if one.rate_gbps == LINE_GBPS]
    assert [one.megabytes for one in found] == [30, 300]
    assert [one.set_up_ms for one in found] == pytest.approx([own, own])


def test_break_even_setup_is_shorter_at_a_lower_rate(rows) -> None:
    own = {one.megabytes: one.set_up_ms for one in equals(rows) if one.rate_gbps == LINE_GBPS}
    for one in equals(rows):
        longer = one.megabytes * 8 * (1 / one.rate_gbps - 1 / LINE_GBPS)
        assert one.set_up_ms == pytest.approx(own[one.megabytes] - longer)


def test_blast_is_faster_only_above_the_break_even_setup(rows) -> None:
    lit = {row["megabytes"]: row["seconds"] for row in rows if row["method"] == "blast"}
    equal = {(one.megabytes, one.rate_gbps): one.set_up_ms for one in equals(rows)}
    packet = [row for row in rows if row["method"] == "ip-multicast"]
    for row in packet:
        slower = row["seconds"] > lit[row["megabytes"]]
        assert slower == (row["set_up_ms"] > equal[row["megabytes"], row["rate_gbps"]])
    assert {row["seconds"] > lit[row["megabytes"]] for row in packet} == {True, False}


def test_full_sweep_has_every_size_setup_time_and_rate() -> None:
    labels = [cell.labels for cell in against_set_up(False) if cell.method == "ip-multicast"]
    assert {one["megabytes"] for one in labels} == set(MEGABYTES)
    assert {one["set_up_ms"] for one in labels} == set(SET_UPS_MS)
    assert {one["rate_gbps"] for one in labels} == set(RATES_GBPS)


@pytest.mark.parametrize("load_name", ["none", "light"])
def test_ip_multicast_is_faster_if_its_setup_uses_the_controller(load_name: str) -> None:
    run = {"networks": ["10:1"], "backgrounds": [load_name]}
    settings = {"multicasts.groups": 2, "run": [{**run, "methods": [name]} for name in ("ip-multicast", "blast")]}
    packet, lit = (run_cell(cell)[0] for cell in cells_of(load(find("fig4"), settings), (0,), Effort("0")))
    assert lit["seconds"] - packet["seconds"] == pytest.approx(0.025 - (0.033183 - 0.014172))
