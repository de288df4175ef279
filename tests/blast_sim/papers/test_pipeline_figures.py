"""`blast figures pipeline`: figures of the results of two benchmark scripts."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from blast_sim.papers.measurements import CHECKOUT, measure
from blast_sim.papers.pipeline.drawings import TOOLS, of_shares
from blast_sim.papers.pipeline.figures import BENCHMARKS, draw, summary
from blast_sim.papers.pipeline.rows import ONE_MACHINE, ONE_START, notes, scenario_summary
from blast_sim.papers.pipeline.start_drawing import of_start
from blast_sim.papers.saving import Gallery
from tests.support.simulators.sim_output import rows_of, run, texts


def row(scenario: str, tool: str, receivers: int, **columns: object) -> dict[str, object]:
    rate = {"sites": 400.0, "fast": None, "small": None}.get(scenario, 16.0)
    return {
        "scenario": scenario, "section": "IV", "tool": tool, "title": tool.capitalize(), "receivers": receivers,
        "rate_mbps": rate, "bytes": 20_000_000, "limit_seconds": 100, "repeats": 2, "seconds": [12.0, 22.0],
        "start_seconds": [2.0, 2.0], "processor_seconds": [1.0, 3.0],
        "others_share": [0.0, 0.05], "failures": [], "late": 0, "left_out": "",
    } | columns  # fmt: skip


NOTHING = {"seconds": [], "start_seconds": [], "processor_seconds": [], "others_share": []}
SCENARIOS = ("ordered", "fast", "random", "disk", "sites", "small")
ROWS = [
    row(scenario, tool, receivers)
    for scenario in SCENARIOS
    for tool in ("pipeline", "udpcast")
    for receivers in (10, 100)
]
FAILURES = [
    {"way": way, "scenario": scenario, "nodes": 100, "rate_mbps": 16.0, "bytes": 50_000_000, "seconds": seconds}
    for way, scenario, seconds in (
        ("none", "no failure", [25.0, 25.0]),
        ("killed", "10 % one after the other", [26.0, 28.0]),
        ("frozen", "10 % one after the other", []),
    )
]


def test_every_figure_is_drawn_with_its_table(tmp_path):
    written = draw({"rows": ROWS, "failures": FAILURES}, Gallery(tmp_path))
    names = ("scale", "fast", "random", "disk", "sites", "small", "failures")
    assert [path.name for path in written] == [f"pipeline-{name}.{kind}" for name in names for kind in ("svg", "csv")]
    for name in names[:-1]:
        assert texts(tmp_path / f"pipeline-{name}.svg") >= {"Pipeline", "Udpcast"}
    assert "Pipeline, ordered by racks" in texts(tmp_path / "pipeline-random.svg")
    assert any("45 MB/s" in text for text in texts(tmp_path / "pipeline-disk.svg"))
    assert any("80 MB/s" in text for text in texts(tmp_path / "pipeline-failures.svg"))
    rows = rows_of(tmp_path / "pipeline-disk.csv")
    assert [bool(row["from"]) for row in rows] == [False] * 4 + [True]
    assert [row["start_seconds"] for row in rows] == ["2.0"] * 4 + [""]


def test_figure_notes_tools_that_are_missing_or_failed(tmp_path):
    rows = [
        row("sites", "pipeline", 2, failures=["h1 ended"], others_share=[0.2, 0.6]),
        row("sites", "udpcast", 2, left_out="no multicast is routed", **NOTHING),
        row("sites", "naive", 2, late=1, **NOTHING),
        row("sites", "naive", 3, left_out="not done in 100 s with 2 receivers already", **NOTHING),
    ]
    draw({"rows": rows, "failures": FAILURES}, Gallery(tmp_path))
    shown = texts(tmp_path / "pipeline-sites.svg")
    assert "Udpcast is left out: no multicast is routed." in shown
    assert any(text.startswith("All hosts start on the processors of one machine") for text in shown)
    assert "Pipeline, 2 receivers: 1 of 3 runs failed." in shown
    assert "Other work had up to 60 % of the machine's processors while this was measured." in shown
    assert "Naive: slower than this, not done in 100 s" in shown
    assert not any("already" in text for text in shown)
    draw({"rows": [{**one, "scenario": "small"} for one in rows], "failures": FAILURES}, Gallery(tmp_path))
    assert "Naive: not done in 100 s" in texts(tmp_path / "pipeline-small.svg")


def test_notes_state_the_effect_of_a_single_machine():
    assert notes([scenario_summary(row("ordered", "pipeline", 10))]) == [ONE_START]
    assert notes([scenario_summary(row("small", "pipeline", 10))]) == [ONE_MACHINE]


def test_failure_summary_has_the_throughput():
    one = summary(FAILURES[1])
    rates = [50 / 26, 50 / 28]
    assert one["megabytes_per_second"] == pytest.approx(sum(rates) / 2)
    assert one["share"] == pytest.approx(one["megabytes_per_second"] / 2)
    # Two values: their distance by 12.706 / 2.
    assert one["half"] == pytest.approx(12.706 / 2 * (rates[0] - rates[1]), rel=1e-3)
    assert one["runs"] == 2


def test_scenario_summary_separates_start_and_transfer():
    one = scenario_summary(row("ordered", "mpi", 10))
    assert (one["seconds"], one["start_seconds"], one["transfer_seconds"]) == (17.0, 2.0, 15.0)
    # 20 MB in 10 and in 20 s, of 2 MB/s.
    assert one["megabytes_per_second"] == pytest.approx(1.5) and one["share"] == pytest.approx(0.75)
    assert one["share_half"] == pytest.approx(12.706 / 2 * 0.5, rel=1e-3)
    # 1 and 3 s for ten copies of 20 MB.
    assert one["processor_ns"] == pytest.approx(10.0)
    assert "share" not in scenario_summary(row("small", "mpi", 10))
    late = scenario_summary(row("ordered", "naive", 10, late=1))
    assert late["bound"] == pytest.approx(0.1) and late["runs"] == 0 and "share" not in late


def test_points_are_at_the_summarized_values():
    figure = Figure()
    rows = [scenario_summary(row("ordered", "pipeline", receivers)) for receivers in (100, 10)]
    rows.append(scenario_summary(row("ordered", "naive", 10, late=1)))
    of_shares("Title")(figure, rows)
    shares, starts = figure.axes
    for axes, column in ((shares, "share"), (starts, "start_seconds")):
        (line,) = axes.containers
        assert line.lines[0].get_xydata().tolist() == [[10, rows[0][column]], [100, rows[0][column]]]
    assert [10.0, pytest.approx(0.1)] in [one.get_xydata().tolist()[0] for one in shares.lines if len(one.get_xdata())]


def test_bars_stack_transfer_time_on_start_time():
    figure = Figure()
    of_start(figure, [scenario_summary(row("small", tool, receivers)) for tool in TOOLS for receivers in (10, 100)])
    bars = [bar for bar in figure.axes[0].patches if bar.get_height()]
    assert [(bar.get_y(), bar.get_height()) for bar in bars] == [(0, 2.0), (0, 2.0), (2.0, 15.0), (2.0, 15.0)] * len(
        TOOLS
    )
    places = sorted(bar.get_x() for bar in bars if not bar.get_y())
    assert len(set(places)) == 2 * len(TOOLS)
    assert min(later - earlier for earlier, later in pairwise(places)) >= bars[0].get_width() - 1e-9


def test_command_draws_kept_results_and_reports_missing_ones(tmp_path, capsys):
    """The figures omit a scenario that was not measured."""
    measured, options = tmp_path / "pipeline_scenarios.json", ("--out", tmp_path, "--benchmarks", tmp_path / "nowhere")
    draw_all = partial(run, capsys, "figures", "pipeline", *options)
    rows = [row("ordered", "pipeline", 10), row("disk", "pipeline", 10, **NOTHING)]
    measured.write_text(json.dumps({"rows": rows}))
    status, _, err = draw_all()
    assert status == 2 and "run in a checkout" in err
    (tmp_path / "pipeline_failures.json").write_text(json.dumps({"failures": FAILURES}))
    status, out, _ = draw_all()
    assert status == 0
    assert {Path(line).stem for line in out.split()} == {"pipeline-scale", "pipeline-failures"}
    measured.write_text(json.dumps({"rows": [{n: v for n, v in one.items() if n != "start_seconds"} for one in rows]}))
    status, _, err = draw_all()
    assert status == 2 and "use --again to repeat the measurement" in err


def test_benchmark_scripts_of_the_checkout_write_the_read_columns():
    checkout = Path(__file__).parents[3]
    for benchmark in BENCHMARKS:
        folder = checkout / (CHECKOUT if benchmark.needs_checkout else "blast_sim/papers/blast/measuring")
        source = (folder / f"{benchmark.script}.py").read_text()
        assert "--quick" in source
        assert not benchmark.keeps or "--keep" in source
        parts = [source, *(part.read_text() for part in (folder / "bed").glob("*.py"))]
        for table, columns in benchmark.columns.items():
            for name in (table, *columns):
                assert any(f'"{name}"' in part for part in parts), name


STOPPED = """
import signal, sys, time
from pathlib import Path
kept = Path(sys.argv[sys.argv.index("--keep") + 1])
def end(*_):
    kept.write_text(kept.read_text() + "ended in order")
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
kept.write_text("a cell; ")
sys.stderr.write("ready\\n")
sys.stderr.flush()
time.sleep(60)
"""


def test_interrupted_measurement_ends_in_order_and_keeps_its_cells(tmp_path):
    (tmp_path / "pipeline_scenarios.py").write_text(STOPPED)

    def interrupt(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(BENCHMARKS[0], tmp_path, True, tmp_path, interrupt)
    assert (tmp_path / "pipeline_scenarios.quick-cells").read_text() == "a cell; ended in order"
    assert not (tmp_path / "pipeline_scenarios.unfinished").exists()


def test_cells_are_removed_after_the_result_is_written(tmp_path):
    rows = json.dumps({"rows": ROWS})
    source = f"import sys; open(sys.argv[sys.argv.index('--keep') + 1], 'w').close(); print({rows!r})"
    (tmp_path / "pipeline_scenarios.py").write_text(source)
    measure(BENCHMARKS[0], tmp_path, True, tmp_path, lambda _: None)
    assert {path.name for path in tmp_path.iterdir()} == {"pipeline_scenarios.py", "pipeline_scenarios.json"}
