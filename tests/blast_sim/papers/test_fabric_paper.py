"""Panels of the paper on rack-fabric multicast: their simulations and drawings."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from blast_sim.papers.rack_fabric import whole_system
from blast_sim.papers.rack_fabric.claims import (
    CLAIMS,
    EXPLAINING_EXPERIMENTS,
    MISSING,
    NUMBER,
    CheckedClaim,
    CheckedExperiment,
    ClaimVerdict,
    FabricClaim,
    claim_rows,
    experiment_rows,
)
from blast_sim.papers.rack_fabric.drawings import STATED, drawing
from blast_sim.papers.rack_fabric.evaluation import EXPERIMENTS, PANELS, Curves
from blast_sim.papers.rack_fabric.models import flow, model
from blast_sim.papers.rack_fabric.panel import Panel, PanelCase, between, mean_throughput, throughput_over_time
from blast_sim.papers.rack_fabric.sensitivity import REPORTED_GBPS, TOLERANCE, variations
from blast_sim.papers.saving import Gallery, save
from tests.support.simulators.sim_output import rows_of, texts

OF_THE_PAPER = "2c 4a 4b 4c 5b 5c 5d 6a 6b 6c 6d 6e 9a 9b 10a 10b 10c 10d 13a 13b 15 16"


def results(**flows: list[list[float]]) -> dict[str, Any]:
    """Return simulator results of flows whose destinations receive these series."""
    received = {
        name: [{"gbps": sum(one) / len(one), "series_gbps": one} for one in series] for name, series in flows.items()
    }
    return {
        "series": {"sample_ns": 500_000, "cache_packets": [{"packets": [3, 7]}]},
        "flows": [{"name": name, "destinations": destinations} for name, destinations in received.items()],
    }


def test_every_panel_with_curves_exists_once() -> None:
    assert [panel.name for panel in PANELS] == OF_THE_PAPER.split()
    names = [panel.name for panel in [*PANELS, *EXPERIMENTS]]
    assert len(set(names)) == len(names)


def test_cases_differ_only_by_their_seed() -> None:
    for panel in [*PANELS, *EXPERIMENTS]:
        first, again, other = panel.cases(1), panel.cases(1), panel.cases(2)
        assert [case.model for case in first] == [case.model for case in again]
        assert all(case.model["seed"] == 2 for case in other)
        assert [(case.line, case.x) for case in first] == [(case.line, case.x) for case in other]


def test_trees_of_figure_13_have_the_demand_of_the_paper() -> None:
    drawn = whole_system.many_trees(1, 25.0)
    assert len(drawn["flows"]) == 60
    assert all(len(set(one["to"]["leaves"])) == 20 for one in drawn["flows"])
    assert {leaf for one in drawn["flows"] for leaf in one["to"]["leaves"]} == set(range(3, 43))
    assert len({tuple(one["source"]) for one in drawn["flows"]}) == 6
    assert sum(one["rate_gbps"] for one in drawn["flows"]) == pytest.approx(6 * 25)
    assert whole_system.demand(30) == 90
    assert drawn != whole_system.many_trees(2, 25.0)


def test_scenario_has_the_leaves_of_its_flows() -> None:
    named = [flow("a", (0, 0), ((3, 0), (1, 1))), flow("b", (2, 0), {"leaves": [5, 4]})]
    assert model("some", 1, 0.5, named)["topology"] == {"leaves": 6}
    assert "topology" not in model("all", 1, 0.5, [*named, flow("c", (0, 0), "all")])
    assert model("some", 1, 0.5, named)["duration_ns"] == 500_000


def test_result_of_a_run_is_a_point_or_a_line() -> None:
    found = results(m=[[10.0, 20.0], [30.0, 40.0]], other=[[1.0, 1.0]])
    assert list(mean_throughput(PanelCase("line", 3, {}), found)) == [("line", 3, 25.0)]
    over_time = throughput_over_time({"m": ("first", "second")})
    assert list(over_time(PanelCase("", 0, {}), found)) == [
        ("first", 0.25, 10.0),
        ("first", 0.75, 20.0),
        ("second", 0.25, 30.0),
        ("second", 0.75, 40.0),
    ]
    assert between([(0.25, 1), (0.75, 3), (1.25, 8)], 0.5, 2) == 5.5


def holds(curves: Curves) -> tuple[str, bool]:
    return "", True


@pytest.mark.parametrize("verdict", [one for one in ClaimVerdict if one is not ClaimVerdict.OUT_OF_SCOPE])
def test_verdict_agrees_with_its_check(verdict: ClaimVerdict) -> None:
    claim = FabricClaim("1", "a", "", verdict, holds)
    contradicted = verdict in {ClaimVerdict.NOT_REPRODUCED, ClaimVerdict.REFUTED}
    assert CheckedClaim(claim, "", agrees=not contradicted).expected
    assert not CheckedClaim(claim, "", agrees=contradicted).expected


def test_only_claims_out_of_scope_are_not_checked() -> None:
    assert all((claim.check is None) is (claim.verdict is ClaimVerdict.OUT_OF_SCOPE) for claim in CLAIMS)
    assert {row["here"] for row in claim_rows(checked_claims_without_curves())} == {MISSING}


def checked_claims_without_curves() -> list[CheckedClaim]:
    return [CheckedClaim(claim, MISSING, None) for claim in CLAIMS if claim.check is None]


def test_every_verdict_but_reproduced_has_a_reason() -> None:
    assert not [claim.sentence for claim in CLAIMS if claim.verdict is not ClaimVerdict.REPRODUCED and not claim.reason]
    assert all(claim.paper for claim in CLAIMS)


def test_no_claim_is_refuted_without_a_proof() -> None:
    assert ClaimVerdict.REFUTED not in {claim.verdict for claim in CLAIMS}


def figure_13a(*, sync_gbps: float, no_sync_gbps: float) -> Curves:
    return {"13a": {whole_system.SYNC: [(30.0, sync_gbps)], whole_system.NO_SYNC: [(30.0, no_sync_gbps)]}}


def test_claim_of_83_gbps_is_checked_on_the_sync_curve() -> None:
    claim = next(
        claim for claim in CLAIMS if claim.figure == "13a" and "30 Gb/s of a source, with sync" in claim.sentence
    )
    assert claim.check is not None
    assert claim.check(figure_13a(sync_gbps=48.3, no_sync_gbps=82.9)) == ("48.3 Gb/s", False)
    assert claim.check(figure_13a(sync_gbps=82.9, no_sync_gbps=48.3)) == ("82.9 Gb/s", True)


def made_up(panel: Panel) -> list[dict[str, Any]]:
    """Return lines of this panel with arbitrary heights."""
    names = [f"{facet}, {number}" for facet in panel.facets or ("line",) for number in range(5)]
    return panel.rows(
        {name: [(2.0**x, 20.0 * (1 + number % 5)) for x in range(8)] for number, name in enumerate(names)}
    )


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_marks_of_the_paper_lie_within_the_panel(panel: Panel) -> None:
    figure = Figure()
    drawing(panel)(figure, made_up(panel))
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == 0 and all(mark.y < high for mark in panel.marks)
        heights = [y for line in axes.get_lines() for y in line.get_ydata()]  # type: ignore[union-attr]
        assert max(heights) < high


def test_panel_is_saved_as_picture_and_table(tmp_path: Path) -> None:
    panel = next(panel for panel in PANELS if panel.marks)
    rows = made_up(panel)
    picture, table = save(Gallery(tmp_path), panel.name, rows, drawing(panel))
    shown = " ".join(texts(picture))
    stated = [STATED, *(mark.words for mark in panel.marks)]
    assert all(words in shown for words in (panel.x.label, panel.y.label, *stated))
    read = rows_of(table)
    assert list(read[0]) == ["line", panel.x.column, panel.y.column]
    assert len(read) == len(rows)


GUIDE = (Path(__file__).parents[3] / "docs" / "explanation" / "rack-fabric.md").read_text().splitlines()


def cells_below(head: str) -> list[list[str]]:
    """Return the cells of the table of the guide that has this head."""
    rows = takewhile(lambda line: line.startswith("|"), GUIDE[GUIDE.index(head) + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_guide_lists_every_claim_with_its_verdict() -> None:
    rows = cells_below("| figure | claim | paper | here | verdict |")
    assert [[*row[:3], row[4]] for row in rows] == [
        [claim.figure, claim.sentence, claim.paper, claim.verdict.value] for claim in CLAIMS
    ]
    assert all((row[3] == MISSING) is (claim.check is None) for row, claim in zip(rows, CLAIMS, strict=True))
    names = [row["name"] for row in claim_rows([CheckedClaim(claim, MISSING, None) for claim in CLAIMS])]
    assert all(set(ids_in(row[3])) <= {f"fabric.claims.{name}"} for row, name in zip(rows, names, strict=True))


def ids_in(here: str) -> list[str]:
    """Return the ids of a cell, without the place of the number in the cell."""
    assert len(NUMBER.findall(re.sub(r"<!--.*?-->", "", here))) == here.count("<!--"), here
    return re.findall(r"<!--(.*?)\.\d+-->", here)


def test_numbers_of_a_claim_become_columns() -> None:
    claim = next(claim for claim in CLAIMS if claim.check)
    (row,) = claim_rows([CheckedClaim(claim, "T2 37.2 Gb/s, 4 % of them", True)])
    assert {key: value for key, value in row.items() if key.startswith("value")} == {"value_1": 37.2, "value_2": 4.0}


def test_guide_lists_every_experiment_and_reason() -> None:
    rows = cells_below("| figure | experiment | here |")
    assert [row[:2] for row in rows] == [[one.figure, one.sentence] for one in EXPLAINING_EXPERIMENTS]
    checked = [CheckedExperiment(one, "", True) for one in EXPLAINING_EXPERIMENTS]
    for row, name in zip(rows, [one["name"] for one in experiment_rows(checked)], strict=True):
        assert set(ids_in(row[2])) <= {f"fabric.experiments.{name}"}
    reasons = [line for line in GUIDE if line.startswith("- **")]
    assert all(any(line.endswith(f": {claim.reason}.") for line in reasons) for claim in CLAIMS if claim.reason)


def test_guide_lists_every_variation_of_the_sensitivity_study() -> None:
    rows = cells_below("| parameter | the paper | values tried | highest, Gb/s | within 5 % of 83 |")
    assert [row[:3] for row in rows] == [[one.parameter, one.stated, ", ".join(one.models)] for one in variations(1)]
    for row, variation in zip(rows, variations(1), strict=True):
        gbps, name = re.fullmatch(r"(.+)<!--fabric-sensitivity\.(.+)-->", row[3]).groups()  # type: ignore[union-attr]
        assert name == variation.name
        close = {label for label in variation.models if label in row[4].split(", ")}
        assert close == variation.explains
        assert (abs(float(gbps) / REPORTED_GBPS - 1) <= TOLERANCE) is bool(close)


def test_variation_changes_only_its_parameter() -> None:
    stated = whole_system.many_trees(1, 30.0)
    for variation in variations(1):
        for label, model_of_label in variation.models.items():
            changed = {key for key, value in model_of_label.items() if stated.get(key) != value}
            # A draw is another seed with other flows; warm-up follows the duration.
            assert len(changed - {"seed", "warmup_ns"}) <= 1, (variation.parameter, label)
