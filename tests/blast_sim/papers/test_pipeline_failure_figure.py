"""The figure of failing pipeline nodes: the bars of different kinds of failure do not overlap."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from blast_sim.papers.pipeline.failure_drawing import of_failures
from blast_sim.papers.pipeline.figures import summary

SCENARIOS = ("no failure", "2 % at once", "10 % one after the other")
FAILURE_KINDS = ("killed", "frozen", "vanished")


def failures(way: str, scenario: str, *seconds: float) -> dict[str, object]:
    setting = {"nodes": 100, "rate_mbps": 16.0, "bytes": 50_000_000, "wrong": []}
    return summary({"way": way, "scenario": scenario, "seconds": list(seconds), **setting})


def test_bars_show_shares_of_the_link_and_a_line_shows_the_paper():
    figure = Figure()
    paper = {"scenario": "no failure", "megabytes_per_second": 80.0, "share": 0.64, "from": "the paper"}
    of_failures(figure, [failures("none", "no failure", 25, 25), failures("killed", "2 % at once", 26, 28), paper])
    bars = [patch.get_height() for patch in figure.axes[0].patches]
    assert bars == [pytest.approx(1.0), pytest.approx((50 / 26 + 50 / 28) / 4)]
    assert [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_label() == "the paper"] == [0.64]
    assert "100 nodes, 50 MB, links of 16 Mbit/s, 2 runs" in figure.axes[0].get_title(loc="left")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FAILURE_KINDS), st.sampled_from(SCENARIOS[1:])), unique=True, max_size=6))
def test_bars_are_at_their_scenario_without_overlap(measured: list[tuple[str, str]]):
    figure = Figure()
    rows = [failures("none", SCENARIOS[0], 25.0), *(failures(way, scenario, 30.0) for way, scenario in measured)]
    of_failures(figure, rows)
    names = list(dict.fromkeys(row["scenario"] for row in rows))
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in figure.axes[0].patches)
    assert len(spans) == len(rows)
    assert all(end <= start + 1e-9 for (_, end), (start, _) in itertools.pairwise(spans))
    found = sorted(round((start + end) / 2) for start, end in spans)
    assert found == sorted(names.index(row["scenario"]) for row in rows)
    assert [label.get_text().replace("\n", " ") for label in figure.axes[0].get_xticklabels()] == names
