"""One multicast over the rack fabric, over the optical network, and over both: simulations and results."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from blast_sim.papers.rack_fabric.light_drawing import with_light
from blast_sim.papers.rack_fabric.with_light import (
    BOTH,
    ENTRY,
    FABRIC,
    LIGHT,
    FabricRun,
    JoinedRacks,
    OpticalSetup,
    OpticalTrial,
    fullest_kb,
    rows_of,
    runs_of,
    scenario,
    slowest_share,
    trials,
    unicast_share,
)

DATA = OpticalSetup(0.02, 125e6)
"""A gigabit, and 20 ms to switch."""


def received(copies: int, delay_ns: float) -> dict:
    return {"copies": copies, "mean_delay_ns": delay_ns}


def results(multicast: list[dict] | None, unicast: list[dict], fullest: int = 0) -> dict:
    """Return possible results of the simulator, with 100 frames offered in each flow.

    The ingress is fuller during the warm-up than after it.
    """
    flows = [{"name": f"unicast {n}", "offered_frames": 100, "destinations": [one]} for n, one in enumerate(unicast)]
    if multicast is not None:
        flows.insert(0, {"name": "multicast", "offered_frames": 100, "destinations": multicast})
    return {"flows": flows, "series": {"fullest_ingress_packets": [700] * 75 + [0, fullest, 0]}}


def found_for(requested: list[OpticalTrial]) -> dict[FabricRun, dict]:
    """Return results in which one server receives half of its copies beside unicast, and all others receive all."""
    quick = [received(100, 2000.0), received(100, 2000.0)]
    hit = [received(100, 10_000.0), received(100, 2000.0)]
    return {
        run: results(
            ([received(100, 4000.0), received(49 if run.unicast else 100, 5000.0)] if run.multicast_gbps else None),
            (hit if run.multicast_gbps else quick) if run.unicast else [],
            400 if run.multicast_gbps else 4,
        )
        for run in runs_of(requested)
    }


@pytest.mark.parametrize(("way", "fibers"), [(FABRIC, 0), (LIGHT, 640), (BOTH, 16)])
def test_optical_fibers_end_at_every_server_or_every_rack(way: str, fibers: int) -> None:
    assert OpticalTrial(way, 10.0, 16).fibers == fibers


def test_each_rack_has_its_own_fabric_and_seed_with_light_to_racks() -> None:
    assert OpticalTrial(FABRIC, None, 3).fabrics == OpticalTrial(LIGHT, 10.0, 3).fabrics == [JoinedRacks(3)]
    fabrics = OpticalTrial(BOTH, 10.0, 3).fabrics
    assert [one.racks for one in fabrics] == [1, 1, 1] and len({one.seed for one in fabrics}) == 3


def test_light_to_servers_leaves_only_unicast_to_the_fabric() -> None:
    assert runs_of([OpticalTrial(LIGHT, 10.0, 2), OpticalTrial(LIGHT, 100.0, 2)]) == [
        FabricRun(JoinedRacks(2), 0.0, True)
    ]


def test_runs_of_several_rows_are_simulated_once() -> None:
    runs = runs_of(trials((1, 2)))
    assert len(runs) == len(set(runs))
    assert {run.multicast_gbps for run in runs} == {0.0, 10.0, 99.0, 100.0}
    assert all(run.multicast_gbps or run.unicast for run in runs)


def test_multicast_has_its_own_source_port_and_reaches_all_servers() -> None:
    model = scenario(FabricRun(JoinedRacks(2), 99.0, False))
    (multicast,) = model["flows"]
    assert tuple(multicast["source"]) == ENTRY and multicast["source"] not in multicast["to"]
    assert len(multicast["to"]) == 80 and {port for _, port in multicast["to"]} == set(range(5))
    assert model["topology"] == {"leaves": 16, "ethernet_ports": 6, "pcie_ports": 1}


def test_unicast_is_a_permutation_of_leaves_within_each_rack() -> None:
    model = scenario(FabricRun(JoinedRacks(3), 0.0, True))
    pairs = [(flow["source"][0], flow["to"][0][0]) for flow in model["flows"]]
    assert sorted(a for a, _ in pairs) == sorted(b for _, b in pairs) == list(range(24))
    assert all(a != b and a // 8 == b // 8 for a, b in pairs)
    assert {(flow["source"][1], flow["to"][0][1]) for flow in model["flows"]} == {(1, 2)}


def test_optical_completion_is_switching_plus_transmission_time() -> None:
    requested = [OpticalTrial(LIGHT, gbps, 2) for gbps in (10.0, 100.0)]
    slow, fast = rows_of(requested, found_for(requested), DATA)
    assert slow["completion_s"] == slow["completion_alone_s"] == pytest.approx(0.02 + 0.1)
    assert fast["completion_s"] == pytest.approx(0.02 + 0.01)
    assert slow["buffer_alone_kb"] == 0.0 and slow["buffer_kb"] == 1.0
    assert slow["unicast_delay_us"] == slow["unicast_delay_alone_us"] == pytest.approx(2.0)
    assert (slow["servers"], slow["fibers"]) == (80, 80)


def test_fabric_completion_depends_on_the_slowest_server() -> None:
    requested = [OpticalTrial(FABRIC, None, 1)]
    (row,) = rows_of(requested, found_for(requested), DATA)
    assert row["completion_alone_s"] == pytest.approx(1 / 99 + 5e-6)
    assert row["completion_s"] == pytest.approx(2 / 99 + 5e-6)
    assert (row["buffer_kb"], row["buffer_alone_kb"]) == (100.0, 100.0)
    assert row["unicast_delay_us"] == pytest.approx(6.0) and row["unicast_delay_worst_us"] == pytest.approx(10.0)
    assert row["unicast_share"] == row["unicast_share_alone"] == 1.0


def test_light_to_racks_waits_for_the_slowest_rack() -> None:
    requested = [OpticalTrial(BOTH, 10.0, 2)]
    found = found_for(requested)
    slow = [received(24, 9000.0)]
    found[FabricRun(JoinedRacks(1, 2), 10.0, True)] = results(slow, [received(50, 30_000.0)], 500)
    (row,) = rows_of(requested, found, DATA)
    assert row["completion_alone_s"] == pytest.approx(0.02 + 0.1 + 5e-6)
    assert row["completion_s"] == pytest.approx(0.02 + 0.4 + 9e-6)
    assert row["buffer_kb"] == 125.0
    assert row["unicast_share"] == pytest.approx(250 / 300)
    assert row["unicast_delay_us"] == pytest.approx((100 * 10 + 100 * 2 + 50 * 30) / 250)
    assert row["unicast_delay_worst_us"] == pytest.approx(30.0)
    assert (row["servers"], row["fibers"]) == (80, 2)


def test_buffer_occupancy_during_warm_up_is_ignored() -> None:
    assert fullest_kb([results(None, [], 8), results(None, [], 12)]) == 3.0
    assert fullest_kb([]) == 0.0


def test_one_frame_more_or_less_does_not_change_the_share() -> None:
    assert slowest_share(results([received(99, 1.0)], [])) == 1.0
    assert slowest_share(results([received(101, 1.0)], [])) == 1.0
    assert slowest_share(results([received(98, 1.0), received(100, 1.0)], [])) == pytest.approx(0.99)
    assert unicast_share([results(None, [received(103, 1.0)])]) == 1.0


def drawn(rows: list[dict]) -> Figure:
    figure = Figure(layout="constrained")
    with_light(figure, rows)
    return figure


def test_figure_has_a_line_for_each_method_and_optical_rate() -> None:
    requested = list(trials((1, 2)))
    figure = drawn(rows_of(requested, found_for(requested), DATA))
    completion, fibers, buffer, delay = figure.axes
    assert [len(axes.lines) for axes in (completion, fibers, buffer, delay)] == [10, 4, 10, 11]
    assert completion.get_yscale() == "log"
    legend_texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert len(legend_texts) == len(set(legend_texts)) == 6
    assert (
        sum("computed" in words for words in legend_texts) == 4
        and sum("simulated" in words for words in legend_texts) == 3
    )
    assert "all of that arrives" in figure.get_suptitle()


def test_title_reports_lost_unicast() -> None:
    requested = list(trials((1,)))
    rows = rows_of(requested, found_for(requested), DATA)
    rows[0]["unicast_share"] = 0.834
    assert "at least 83% of that arrives" in drawn(rows).get_suptitle()
