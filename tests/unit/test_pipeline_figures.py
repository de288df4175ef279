"""`blast figures pipeline`: what is drawn from the results of two benchmark scripts."""

from __future__ import annotations

import csv
import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from blast_client import command
from blast_sim.pipeline_drawings import against_receivers, of_failures
from blast_sim.pipeline_figures import BENCHMARKS, draw, summary

ROWS = [
    {"scenario": scenario, "section": "IV", "tool": tool, "title": tool.capitalize(), "receivers": receivers,
     "rate_mbps": rate, "bytes": 20_000_000, "seconds": [10.0, 10.0 + number], "failures": []}
    for number, (scenario, rate) in enumerate(
        (("ordered", 16.0), ("random", 16.0), ("disk", 16.0), ("sites", 400.0), ("small", None))
    )
    for tool in ("pipeline", "udpcast")
    for receivers in (10, 100)
]  # fmt: skip
FAILURES = [
    {"scenario": scenario, "nodes": 100, "rate_mbps": 16.0, "bytes": 50_000_000, "seconds": seconds, "wrong": []}
    for scenario, seconds in (("no failure", [25.0, 25.0]), ("10 % one after the other", [26.0, 28.0]), ("lost", []))
]


def texts(path: Path) -> set[str]:
    return {"".join(element.itertext()).strip() for element in ElementTree.parse(path).iter() if element.text}


def test_every_picture_has_its_figures(tmp_path):
    written = draw({"rows": ROWS, "failures": FAILURES}, tmp_path, "svg")
    names = ("pipeline-scale", "pipeline-sites", "pipeline-small", "pipeline-failures")
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("svg", "csv")]
    assert texts(tmp_path / "pipeline-scale.svg") >= {"Pipeline, random order", "Udpcast, ordered, to disk"}
    assert any("45 MB/s" in text for text in texts(tmp_path / "pipeline-scale.svg"))
    assert any("80 MB/s" in text for text in texts(tmp_path / "pipeline-failures.svg"))
    with (tmp_path / "pipeline-scale.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13
    assert [row["from"] != "" for row in rows] == [False] * 12 + [True]


def test_a_scenario_that_was_not_measured_is_left_out(tmp_path):
    written = draw({"rows": ROWS[:4], "failures": FAILURES}, tmp_path, "svg")
    assert {path.stem for path in written} == {"pipeline-scale", "pipeline-failures"}


def test_a_summary_is_of_the_throughput():
    row = summary(FAILURES[1])
    rates = [50 / 26, 50 / 28]
    assert row["megabytes_per_second"] == pytest.approx(sum(rates) / 2)
    assert row["share"] == pytest.approx(row["megabytes_per_second"] / 2)
    # Two values: their distance by 12.706 / 2.
    assert row["half"] == pytest.approx(12.706 / 2 * (rates[0] - rates[1]), rel=1e-3)
    assert row["runs"] == 2
    assert summary(next(one for one in ROWS if one["scenario"] == "small"))["share"] is None


def test_points_lie_where_the_figures_say():
    figure = Figure()
    against_receivers(figure, [summary(row) for row in ROWS[:2]])
    (line,) = figure.axes[0].containers
    assert line.lines[0].get_xydata().tolist() == [[10, 1.0], [100, 1.0]]


def test_bars_are_shares_of_the_link_and_the_paper_is_a_line():
    figure = Figure()
    paper = {"scenario": "no failure", "megabytes_per_second": 80.0, "share": 0.64, "from": "paper"}
    of_failures(figure, [*(summary(row) for row in FAILURES[:2]), paper])
    bars = [patch.get_height() for patch in figure.axes[0].patches]
    assert bars == [pytest.approx(1.0), pytest.approx((50 / 26 + 50 / 28) / 4)]
    assert 0.64 in [line.get_ydata()[0] for line in figure.axes[0].lines]


def test_the_command_draws_what_is_kept_and_says_what_is_missing(tmp_path, monkeypatch, capsys):
    ours = [EntryPoint("sim", "blast_sim.command:register", command.GROUP)]
    monkeypatch.setattr(command, "entry_points", lambda group: ours)
    (tmp_path / "pipeline_scenarios.json").write_text(json.dumps({"rows": ROWS}))
    options = ["figures", "pipeline", "--out", str(tmp_path), "--benchmarks", str(tmp_path / "nowhere")]
    assert command.main(options) == 2
    assert "run in a checkout" in capsys.readouterr().err
    (tmp_path / "pipeline_failures.json").write_text(json.dumps({"failures": FAILURES}))
    assert command.main(options) == 0
    assert len(capsys.readouterr().out.split()) == 8


def test_the_scripts_of_this_checkout_are_those_that_are_asked_for():
    folder = Path(__file__).parents[2] / "benchmarks"
    for benchmark in BENCHMARKS:
        source = (folder / f"{benchmark.script}.py").read_text()
        for table, columns in benchmark.columns.items():
            assert all(f'"{name}"' in source for name in (table, *columns)), sys.executable
        assert "--quick" in source
