"""`blast figures blast`: simulated cells, marks of the paper and break-even sizes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from blast_sim.base.scenario_file import ScenarioSource
from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.flow.optics import switches_for
from blast_sim.papers.blast import drawings, figure_cells, figures
from blast_sim.papers.blast.figure_cells import break_even
from blast_sim.scenarios.loading import load
from tests.blast_sim.flow.test_flow_scenarios import SMALL
from tests.blast_sim.papers.test_plan_figures import RESULTS
from tests.support.simulators.sim_output import rows_of, run, texts

FIG4 = [
    {
        "method": method, "network": network, "background": load, "seconds": seconds, "compute_seconds": 0.008,
    }
    for method, network, seconds in [
        ("naive", "10:1", 28.56), ("naive", "non-blocking", 28.56), ("hdfs", "10:1", 8.0),
        ("hdfs", "non-blocking", 30.09), ("overlay", "10:1", 0.48), ("overlay", "non-blocking", 10.915),
        ("blast", "10:1", 0.265),
    ]
    for load in ("none", "light", "heavy")
]  # fmt: skip


def small_cells(**settings: object):
    scenario = load(ScenarioSource("mine.toml", SMALL), settings)
    return list(cells_of(scenario, (0,), Effort("1")))


def lit_and_packet(delays: dict[float, float], per_megabyte: float) -> list[dict]:
    """Return rows of Blast (delay + 1 ms per megabyte) and of a method with `per_megabyte` ms per megabyte."""
    sizes = (0.1, 1.0, 10.0, 100.0)
    packet = [{"method": "naive", "background": "none", "megabytes": m, "seconds": m * per_megabyte} for m in sizes]
    lit = [
        {"method": "blast", "background": "none", "megabytes": m, "switching_ms": name, "seconds": delay + m}
        for name, delay in delays.items()
        for m in sizes
    ]
    return packet + lit


def test_break_even_size_balances_switching_and_copies() -> None:
    """Check the break-even size: delay + m = 3 m where m is half the delay."""
    rows = break_even(lit_and_packet({20.0: 20.0, 6.0: 6.0, 2.0: 2.0}, 3.0))
    assert {row["switching_ms"]: row["megabytes"] for row in rows} == pytest.approx({2.0: 1.0, 6.0: 3.0, 20.0: 10.0})


def test_break_even_is_zero_or_none_at_the_extremes() -> None:
    always, never = (break_even(lit_and_packet({1.0: 1e-9}, factor))[0]["megabytes"] for factor in (3.0, 0.5))
    assert always == 0.0 and never is None


def test_figures_sweep_load_splitters_and_size() -> None:
    assert {int(cell.background) for cell in figure_cells.against_load(False)} == {0, 1, 3, 8, 20, 40}
    assert {cell.labels["splitters"] for cell in figure_cells.against_splitters(False)} >= {8, 20, 40}
    sizes = figure_cells.against_size(False)
    assert {cell.labels["switching_ms"] for cell in sizes if cell.method == "blast"} >= {14.172, 25.0, 200.0}
    assert len(figure_cells.figure_four(False)) == 25


def test_every_method_is_simulated_up_to_the_largest_number_of_racks() -> None:
    cells = figure_cells.against_racks(False)
    for method in ("naive", "hdfs", "overlay", "blast"):
        own = {cell.labels["racks"]: cell for cell in cells if cell.method == method}
        assert sorted(own) == [120, 300, 1000, 3000, 10_000]
        assert own[10_000].effort.compute == "recorded"
        groups = own[10_000].scenario.multicasts.groups
        assert groups == own[10_000].labels["groups"] == (300 if method in {"hdfs", "overlay"} else 3000)


@pytest.mark.parametrize(
    ("racks", "switches"),
    [(120, (1, 320)), (300, (1, 1100)), (1000, (3, 1100)), (3000, (8, 1100)), (10_000, (25, 1100))],
)
def test_optical_switches_exist_and_are_large_enough(racks: int, switches: tuple[int, int]) -> None:
    assert switches_for(racks) == switches
    (cell,) = (c for c in figure_cells.against_racks(False) if c.method == "blast" and c.labels["racks"] == racks)
    light = cell.scenario.light
    assert (light.switches, light.switch_ports) == switches and cell.scenario.multicasts.pods == light.switches


def test_every_group_is_optical_with_several_switches() -> None:
    """Two switches of three racks and a splitter each: groups of three racks, each on one of them."""
    settings = {"light.switches": 2, "light.switch_ports": 8, "multicasts.pods": 2}
    for seed in range(5):
        (cell,) = (c for c in small_cells(**settings) if (c.method, c.background) == ("blast", "none"))
        (row,) = run_cell(replace(cell, seed=seed))
        assert row["fell_back"] == 0
        assert row["seconds_without_computation"] == pytest.approx(0.049)


def test_group_across_switches_falls_back() -> None:
    settings = {"light.switches": 2, "light.switch_ports": 8}
    (cell,) = (c for c in small_cells(**settings) if (c.method, c.background) == ("blast", "none"))
    assert sum(run_cell(replace(cell, seed=seed))[0]["fell_back"] for seed in range(5)) > 0


def test_quick_figures_have_fewer_cells_and_no_heavy_load() -> None:
    for picture in figures.PICTURES:
        quick = picture.cells(True)
        assert len(quick) <= len(picture.cells(False))
        assert all(cell.scenario.background.racks_per_direction[cell.background] < 40 for cell in quick)


def test_figure_4_has_its_bars_and_the_marks_of_the_paper() -> None:
    figure = Figure()
    other = {"method": "hdfs", "network": "non-blocking", "background": "heavy", "seconds": 15.045, "reading": "x"}
    drawings.figure_four(figure, [*FIG4, other])
    (axes,) = figure.axes
    title = figure.legends[0].get_title().get_text()
    assert "HDFS: 102.0 of the paper's 0.295 s (paper: 102; other readings 51 to 102), 113.5 of ours" in title
    assert "overlay: 37.0 of the paper's 0.295 s (paper: 37), 41.2 of ours" in title
    heights = sorted(round(bar.get_height(), 3) for bar in axes.patches)
    assert heights.count(28.56) == 6 and heights.count(0.265) == 3
    stated = sorted(float(line.get_ydata()[0]) for line in axes.lines)
    assert "Blast (of this to compute: 8 ms)" in axes.get_legend_handles_labels()[1]
    assert stated == [0.265, 0.295, 0.295]


def test_figure_4_is_drawn_without_heavy_load() -> None:
    figure = Figure()
    drawings.figure_four(figure, [row for row in FIG4 if row["background"] != "heavy"])
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == [
        "none",
        "light",
    ]
    low, high = figure.axes[0].get_ylim()
    assert 0.3 * 0.265 < low < 0.265 and 30.09 < high < 3.1 * 30.09, "the axis is scaled to the drawn bars"


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw every figure from a few cells of a small scenario, with the labels that its drawing needs."""
    jobs = [
        {
            "name": name, "count": 1, "racks": 2, "iterations": 1, "megabytes": 3.0, "compute_s": 0.1,
            "shuffle_mb": 1.0, "shuffle_peers": 1, "aggregation_mb": 1.0,
        }
        for name in ("logistic-regression", "least-squares")
    ]  # fmt: skip
    runs = [
        {"methods": ["naive", "overlay", "blast"], "networks": ["10:1"], "backgrounds": ["none", "light"]},
        {"methods": ["naive", "hdfs", "overlay"], "networks": ["non-blocking"], "backgrounds": ["none", "light"]},
    ]
    base = {
        "network.uplink_gbps": {"10:1": 4.0, "non-blocking": 40.0},
        "background.racks_per_direction": {"none": 0, "light": 1},
        "run": runs,
    }

    def labeled(cells, **labels):
        return [replace(cell, labels={**cell.labels, **labels}) for cell in cells]

    def sized(quick: bool):
        packet = [c for c in small_cells(**base) if c.method != "blast" and c.network == "10:1"]
        lit = [c for c in small_cells(**base) if c.method == "blast"]
        return [
            cell
            for size in (1.0, 30.0)
            for cell in labeled(packet, megabytes=size) + labeled(lit, megabytes=size, switching_ms=25.0)
        ]

    numbered = {**base, "background.racks_per_direction": {"0": 0, "1": 1}}
    numbered["run"] = [{**run, "backgrounds": ["0", "1"]} for run in runs]
    packets = {"run": [{"methods": ["ip-multicast"], "networks": ["10:1"], "backgrounds": ["none"]}]}
    lit = {"run": [{"methods": ["blast"], "networks": ["10:1"], "backgrounds": ["none"]}]}
    source = {
        "blast-ip-multicast": lambda quick: labeled(small_cells(**base | lit), megabytes=30.0) + [
            cell
            for set_up in (0.0, 1.0, 100.0)
            for cell in labeled(
                small_cells(**base | packets, **{"packet_multicast.set_up_ms": set_up}),
                megabytes=30.0, set_up_ms=set_up, rate_gbps=10.0,
            )
        ],
        "blast-figure-4": lambda quick: small_cells(**base),
        "blast-load": lambda quick: small_cells(**numbered),
        "blast-splitters": lambda quick: labeled(
            [c for c in small_cells(**base) if c.method == "blast"], splitters=2, policy="paper"
        ),
        "blast-racks": lambda quick: labeled(
            small_cells(**base), racks=6, groups=2, optical_switches=1, switch_ports=16
        ),
        "blast-sizes": sized,
        "blast-jobs": lambda quick: [
            cell
            for cell in cells_of(
                load(ScenarioSource("mine.toml", SMALL.replace("[multicasts]\ngroups = 2\nmegabytes = 30.0\n", "")),
                     {**base, "jobs": jobs}), (0,), Effort("1"))
            if cell.network == "10:1" and cell.background == "none"
        ],
    }  # fmt: skip
    pictures = tuple(replace(picture, cells=source[picture.name]) for picture in figures.PICTURES)
    monkeypatch.setattr(figures, "PICTURES", pictures)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    for name, result in RESULTS.items():
        (folder / f"{name}.py").write_text(f"print({json.dumps(result)!r})\n")
    return folder


def test_command_draws_every_figure_with_its_table(
    small_pictures: None, scripts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ("figures", "blast", "--out", out, "--benchmarks", scripts, "--processes", 1)
    status, printed, _ = run(capsys, *words)
    names_printed = [Path(line).name for line in printed.split()]
    assert status == 0
    names = ["figure-4", "load", "splitters", "racks", "sizes", "jobs", "ip-multicast", "break-even", "computation",
             "optimality", "greedy"]  # fmt: skip
    assert names_printed == [f"blast-{name}.{kind}" for name in names for kind in ("svg", "csv")]
    marked = "stated in the paper"
    assert f"Blast, {marked}" in texts(out / "blast-figure-4.svg")
    assert f"Blast, {marked}" in texts(out / "blast-load.svg")
    racks = texts(out / "blast-racks.svg")
    assert not {f"computation, 1000 racks, {marked}", f"Blast under load, {marked}"} & racks, "the axis ends at 6 racks"
    assert any("optical switches x ports: 1 x 16; a group's racks are on one switch" in words for words in racks)
    assert f"25 ms, 300 MB, {marked}" in texts(out / "blast-sizes.svg")
    assert f"{marked}, before Blast" in texts(out / "blast-jobs.svg")
    assert "over 99 %" in " ".join(texts(out / "blast-optimality.svg"))
    unproven = "hollow: of the best known, as some optima are not proven"
    assert {"paper: over 99 % in all cases", unproven} <= texts(out / "blast-greedy.svg")
    assert "equal at 26.0 ms" in texts(out / "blast-ip-multicast.svg")
    assert {"25 ms: paper, section VI", "200 ms: Calient, many at once"} <= texts(out / "blast-break-even.svg")
    rows = rows_of(out / "blast-figure-4.csv")
    assert len(rows) == 12 and {row["method"] for row in rows} == {"naive", "hdfs", "overlay", "blast"}
    assert len({path.name for path in (out / "cells").iterdir()}) > 12


def test_cell_without_a_result_is_reported_with_status_1(
    small_pictures: None, scripts: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cell):
        raise RuntimeError("too large")

    monkeypatch.setattr("blast_sim.papers.blast.figures.run_cell", fail)
    words = ("figures", "blast", "--out", tmp_path, "--benchmarks", scripts, "--processes", 1)
    error = "blast: naive on 10:1 beside none has none: RuntimeError: too large\n"
    assert run(capsys, *words) == (1, "", error)
