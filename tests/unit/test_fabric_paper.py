"""Panels of the paper on rack-fabric multicast: what is simulated for them, and how they are drawn."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from blast_sim.fabric.paper import whole_system
from blast_sim.fabric.paper.claims import CLAIMS, Claim, Verdict
from blast_sim.fabric.paper.drawings import drawing
from blast_sim.fabric.paper.evaluation import EXPERIMENTS, PANELS
from blast_sim.fabric.paper.models import flow, model
from blast_sim.fabric.paper.panel import Case, Panel, between, mean_throughput, throughput_over_time
from blast_sim.figures.saving import save
from tests.support.sim_output import rows_of, texts

OF_THE_PAPER = "2c 4a 4b 4c 5b 5c 5d 6a 6b 6c 6d 6e 9a 9b 10a 10b 10c 10d 13a 13b 15 16"


def results(**flows: list[list[float]]) -> dict[str, Any]:
    """Return what the simulator says of flows whose destinations receive these series."""
    received = {
        name: [{"gbps": sum(one) / len(one), "series_gbps": one} for one in series] for name, series in flows.items()
    }
    return {
        "series": {"sample_ns": 500_000, "cache_packets": [{"packets": [3, 7]}]},
        "flows": [{"name": name, "destinations": destinations} for name, destinations in received.items()],
    }


def test_all_panels_with_curves_are_there_once() -> None:
    assert [panel.name for panel in PANELS] == OF_THE_PAPER.split()
    names = [panel.name for panel in [*PANELS, *EXPERIMENTS]]
    assert len(set(names)) == len(names)


def test_seeds_change_runs_and_nothing_else_does() -> None:
    for panel in [*PANELS, *EXPERIMENTS]:
        first, again, other = panel.cases(1), panel.cases(1), panel.cases(2)
        assert [case.model for case in first] == [case.model for case in again]
        assert all(case.model["seed"] == 2 for case in other)
        assert [(case.line, case.x) for case in first] == [(case.line, case.x) for case in other]


def test_the_trees_of_figure_13_ask_as_much_as_the_paper_says() -> None:
    drawn = whole_system.many_trees(1, 25.0)
    assert len(drawn["flows"]) == 60
    assert all(len(set(one["to"]["leaves"])) == 20 for one in drawn["flows"])
    assert {leaf for one in drawn["flows"] for leaf in one["to"]["leaves"]} == set(range(3, 43))
    assert len({tuple(one["source"]) for one in drawn["flows"]}) == 6
    assert sum(one["rate_gbps"] for one in drawn["flows"]) == pytest.approx(6 * 25)
    assert whole_system.demand(30) == 90
    assert drawn != whole_system.many_trees(2, 25.0)


def test_a_scenario_has_the_leaves_that_its_flows_name() -> None:
    named = [flow("a", (0, 0), ((3, 0), (1, 1))), flow("b", (2, 0), {"leaves": [5, 4]})]
    assert model("some", 1, 0.5, named)["topology"] == {"leaves": 6}
    assert "topology" not in model("all", 1, 0.5, [*named, flow("c", (0, 0), "all")])
    assert model("some", 1, 0.5, named)["duration_ns"] == 500_000


def test_a_run_is_a_point_or_a_line() -> None:
    told = results(m=[[10.0, 20.0], [30.0, 40.0]], other=[[1.0, 1.0]])
    assert list(mean_throughput(Case("line", 3, {}), told)) == [("line", 3, 25.0)]
    over_time = throughput_over_time({"m": ("first", "second")})
    assert list(over_time(Case("", 0, {}), told)) == [
        ("first", 0.25, 10.0),
        ("first", 0.75, 20.0),
        ("second", 0.25, 30.0),
        ("second", 0.75, 40.0),
    ]
    assert between([(0.25, 1), (0.75, 3), (1.25, 8)], 0.5, 2) == 5.5


def test_a_refuted_claim_has_to_fail() -> None:
    holding, refuted = Claim("1", "a", lambda curves: ("", True)), Claim("1", "b", lambda curves: ("", True), "why")
    assert Verdict(holding, "", True).expected
    assert not Verdict(holding, "", False).expected
    assert not Verdict(refuted, "", True).expected
    assert Verdict(refuted, "", False).expected


def test_what_is_refuted_is_shown_by_an_experiment_or_by_arithmetic() -> None:
    for before, claim in pairwise([*CLAIMS, Claim("", "", lambda curves: ("", True))]):
        if before.refuted and "ns" not in before.refuted:
            assert claim.sentence.startswith("experiment: "), before.sentence


def made_up(panel: Panel) -> list[dict[str, Any]]:
    """Lines of this panel with some heights."""
    names = [f"{facet}, {number}" for facet in panel.facets or ("line",) for number in range(5)]
    return panel.rows(
        {name: [(2.0**x, 20.0 * (1 + number % 5)) for x in range(8)] for number, name in enumerate(names)}
    )


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_what_the_paper_states_lies_within_the_picture(panel: Panel) -> None:
    figure = Figure()
    drawing(panel)(figure, made_up(panel))
    for axes in figure.axes:
        least, most = axes.get_ylim()
        assert least == 0 and all(mark.y < most for mark in panel.marks)
        heights = [y for line in axes.get_lines() for y in line.get_ydata()]  # type: ignore[union-attr]
        assert max(heights) < most


def test_a_panel_is_a_picture_and_a_table(tmp_path: Path) -> None:
    panel = next(panel for panel in PANELS if panel.marks)
    rows = made_up(panel)
    picture, table = save(tmp_path, panel.name, "svg", rows, drawing(panel))
    shown = " ".join(texts(picture))
    assert all(words in shown for words in (panel.x.label, panel.y.label, *(mark.words for mark in panel.marks)))
    read = rows_of(table)
    assert list(read[0]) == ["line", panel.x.column, panel.y.column]
    assert len(read) == len(rows)


def test_the_guide_has_every_claim_as_it_is_checked() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "rack-fabric.md").read_text()
    for claim in CLAIMS:
        assert f"| {claim.figure} | {claim.sentence} | " in guide
        assert claim.refuted in guide
        row = next(line for line in guide.splitlines() if line.startswith(f"| {claim.figure} | {claim.sentence} | "))
        assert row.endswith("| **refuted** |" if claim.refuted else "| holds |")
