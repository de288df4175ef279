"""The calculations of the test bed for balanced multicasts: plans, rates from measurements, rows for figures."""

from __future__ import annotations

import pytest

from mininet_topos.sites import presets


def test_fpfr_plan_states_assumed_rates_and_expects_achieved_rate():
    from benchmarks.transfers.balanced_bed.planning import planned

    made = planned(presets.figure2().network("root"), "fpfr")
    assert [tree["rate"] for tree in made.trees["trees"]] == pytest.approx([40e6] * 3)
    assert made.rate == pytest.approx(75e6)


@pytest.mark.parametrize(("clusters", "nodes", "mbps"), [(2, 1, 10), (2, 8, 52), (3, 4, 40), (3, 8, 45.6)])
def test_clusters_are_planned_as_trees_over_all_their_hosts(clusters, nodes, mbps):
    from benchmarks.transfers.balanced_bed.planning import planned_clusters

    made = planned_clusters(clusters, nodes, 1.0)
    assert made.rate == pytest.approx(mbps * 1e6)
    assert sum(tree["rate"] for tree in made.trees["trees"]) == pytest.approx(made.rate)
    hosts = set(presets.clusters(clusters, nodes).hosts)
    for tree in made.trees["trees"]:
        assert {child for _, child in tree["edges"]} == hosts - {"amsterdam0"}


def test_dearest_path_and_busiest_interior_host_of_figure_2():
    from benchmarks.transfers.balanced_bed.planning import dearest_path, interior, planned

    path, left, optimum = dearest_path(presets.figure2(), "root")
    assert left.rates[path] == presets.figure2().rates[path] / 2
    assert optimum < 90e6
    assert interior(planned(presets.figure2().network("root"), "exact"), "root") in {"one", "two"}


def test_methods_are_in_order_where_plans_differ_by_more_than_a_tenth():
    from benchmarks.transfers.balanced_sites import in_order

    slow, fast, near = ({"planned": 10.0, "measured": m} for m in (9.0, 19.0, 8.0))
    fast["planned"], near["planned"] = 20.0, 10.5
    assert in_order([slow, fast, near])
    assert not in_order([slow, {**fast, "measured": 8.5}])


def test_rate_after_time_is_that_of_slowest_receiver():
    from benchmarks.transfers.balanced_bed.bed import Seen
    from benchmarks.transfers.balanced_sites import rate_after

    seen = [Seen(second, 1000 * second) for second in range(10)]
    assert rate_after(seen, 3.0, 8000) == pytest.approx(8000)
    assert rate_after(seen, 20.0, 8000) == 0.0


def test_rows_for_figures_have_these_columns_and_no_others(tmp_path):
    from benchmarks.transfers.balanced_sites import COLUMNS, write_csv

    row = {"root": "a", "method": "exact", "planned": 2e6, "measured": 1e6, "share": 0.5, "wrong": ""}
    write_csv(tmp_path / "a.csv", COLUMNS["gridlab"], [row], 0.5)
    assert (tmp_path / "a.csv").read_text() == "root,method,planned,measured\na,exact,4000000.0,2000000.0\n"
    write_csv(tmp_path / "b.csv", COLUMNS["clusters"], [{"clusters": 2, "nodes": 1, **row}], 1.0)
    assert (tmp_path / "b.csv").read_text().splitlines()[0] == "clusters,nodes,planned,measured"
