"""`blast figures allocation`: kept results, new measurements and drawings."""

from __future__ import annotations

import json
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from blast_sim.base.wrong_input import InputError
from blast_sim.papers.blast import measuring
from blast_sim.papers.blast.measuring.allocation_speed import (
    CONTROLLERS_DECISION,
    GREEDY_ALONE,
    MIXED,
    MULTICASTS,
    ONE_REQUEST,
    PAPERS_TABLE_I,
    table_one,
)
from blast_sim.papers.drawings import completion_times, decision_times
from blast_sim.papers.measurements import BENCHMARKS, MeasurementFailedError, _program, kept_in, measure, read
from blast_sim.papers.saving import Gallery, draw, papers, save
from tests.support.simulators.sim_output import rows_of, run, texts

SPEED = {
    "table_one": [
        {"method": method, "racks": racks, "milliseconds": racks / share, "edges": racks}
        for method, share in (("one shot", 3000), ("all pairs", 20))
        for racks in (100, 1000, 10_000)
    ],
    "papers_table_one": [
        {"method": "Blast", "racks": 1000, "milliseconds": 166.0},
        {"method": "OSA", "racks": 80, "milliseconds": 48.0},
    ],
}
QUALITY = {
    "rows": [
        {"case": case, "milliseconds": ms, "greedy": 0.8, "mean": 0.99, "worst": 0.97, "seeds": 3, "proven": proven}
        for case, ms, proven in (("P-contig 200", 50.0, 3), ("P-random-b4", 200.0, 0))
    ],
    "mixture": [
        {"racks": racks, "place": place, "counted": counted, "amount": amount, "greedy": greedy, "worst": greedy - 0.05,
         "best": greedy + 0.01, "optimizer": 0.999, "seeds": 3, "proven": proven}
        for racks, amount, greedy, proven in (
            ("apart", 100, 0.99, 3), ("apart", 1000, 0.99, 3), ("shared", 1, 0.98, 3), ("shared", 60, 0.7, 2)
        )
        for place in ("contig", "random")
        for counted in ("racks", "servers")
    ],
}  # fmt: skip
COMPLETION = {
    table: [
        {"workload": kind, "load": 0.3, "policy": policy, "directional": directional,
         "mean_s": 2.0 + number, "p99_s": 20.0, "mean_service_s": 0.4}
        for kind in ("ML", "FB")
        for number, policy in enumerate(policies)
        for directional in (False, True)
    ]
    for table, policies in (("completion", ("paper", "srpt-lease")), ("policies", ("paper", "smith", "srpt-lease")))
}  # fmt: skip
RESULTS = {"allocation_speed": SPEED, "allocation_quality": QUALITY, "completion_time": COMPLETION}
SPEED_BENCHMARK = BENCHMARKS[0]


@pytest.fixture
def scripts(tmp_path):
    """Write scripts that print these results and their progress, and log that they ran."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    for name, result in RESULTS.items():
        (folder / f"{name}.py").write_text(
            "import sys, pathlib\n"
            f"pathlib.Path({str(tmp_path / 'ran')!r}).open('a').write(' '.join(['{name}', *sys.argv[1:]]) + '\\n')\n"
            "sys.stderr.write('\\r\\x1b[Khalf way')\n"
            f"print({json.dumps(result)!r})\n"
            # As the script that compares with bars ends where one is missed.
            f"sys.exit({int(name == 'allocation_quality')})\n"
        )
    return folder


@pytest.fixture
def blast(capsys):
    return partial(run, capsys, "figures", "allocation")


def test_figures_have_every_method_and_tables_every_row(tmp_path):
    tables = {name: rows for result in RESULTS.values() for name, rows in result.items()}
    written = draw(tables, Gallery(tmp_path))
    assert sorted(path.name for path in written) == sorted(
        f"{name}.{kind}"
        for name in ("allocation-time", "allocation-quality", "completion-time", "completion-policies")
        for kind in ("svg", "csv")
    )
    printed = {"Blast, printed in the paper", "OSA, printed in the paper"}
    assert texts(tmp_path / "allocation-time.svg") >= {"one shot", "all pairs", "10,000", *printed}
    assert texts(tmp_path / "allocation-quality.svg") >= {"95%", "100%", "P-contig 200, 50 ms", "P-random-b4, 200 ms *"}
    assert texts(tmp_path / "completion-time.svg") >= {"paper, one count of ports", "srpt-lease, a port each way"}
    assert texts(tmp_path / "completion-policies.svg") >= {"smith", "Every policy, a port each way"}
    first = (tmp_path / "completion-time.svg").read_bytes()
    save(Gallery(tmp_path), "completion-time", COMPLETION["completion"], completion_times)
    assert (tmp_path / "completion-time.svg").read_bytes() == first, "the same figures make the same picture"
    rows = rows_of(tmp_path / "allocation-time.csv")
    assert len(rows) == 8
    assert [row["method"] for row in rows if row["from"]] == ["Blast", "OSA"]
    assert float(rows[0]["milliseconds"]) == SPEED["table_one"][0]["milliseconds"]
    assert len(rows_of(tmp_path / "completion-policies.csv")) == len(COMPLETION["policies"])


def test_points_are_at_the_measured_values():
    figure = Figure()
    decision_times(figure, [*SPEED["table_one"], {**SPEED["papers_table_one"][0], "from": "paper"}])
    lines = {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].lines}
    assert lines["all pairs"] == [[100, 5], [1000, 50], [10_000, 500]]
    assert lines["Blast, printed in the paper"] == [[1000, 166]]


def test_greedy_without_decision_is_drawn_hollow():
    """Tables I and II of the paper state times of whole decisions."""
    figure = Figure()
    whole, part = "multicasts, the controller's decision", "multicasts, the greedy alone"
    decision_times(figure, [{"method": method, "racks": 100, "milliseconds": 1.0} for method in (whole, part)])
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines[whole].get_linestyle() == "-" and lines[whole].get_markerfacecolor() != "white"
    hollow = lines[f"{part}*"]
    assert hollow.get_linestyle() == "--" and hollow.get_markerfacecolor() == "white"


@pytest.mark.parametrize("workload", [MULTICASTS, MIXED])
def test_table_one_has_greedy_and_controller_rows(workload):
    rows = list(table_one((6,), 1, 4))
    methods = [row["method"] for row in rows]
    for which in (workload, ONE_REQUEST):
        assert methods.count(f"{which}, {GREEDY_ALONE}") == methods.count(f"{which}, {CONTROLLERS_DECISION}") == 1
    (one,) = (row for row in rows if row["method"] == f"{ONE_REQUEST}, {CONTROLLERS_DECISION}")
    assert (one["racks"], one["edges"], one["multicasts_served"]) == (4, 1, 1)


def test_rows_of_the_paper_name_their_table():
    tables = {row["method"]: row["from"] for row in papers(PAPERS_TABLE_I)}
    assert tables["Blast"].endswith("Table I") and tables["Blast, one request"].endswith("Table II")


def test_missing_results_are_measured_once_and_kept(blast, scripts, tmp_path, monkeypatch):
    out, ran = tmp_path / "out", tmp_path / "ran"
    status, printed, err = blast("--out", out, "--benchmarks", scripts, "--quick", "--format", "png")
    assert (status, err) == (0, "")
    assert printed.split() == [str(path) for path in map(Path, printed.split()) if path.stat().st_size]
    assert (out / "allocation-time.png").read_bytes().startswith(b"\x89PNG")
    assert ran.read_text().split("\n")[:-1] == [f"{one.script} --json --quick" for one in BENCHMARKS]
    monkeypatch.setattr("blast_sim.papers.saving.draw", lambda *_: [])
    assert blast("--out", out, "--benchmarks", tmp_path / "nowhere")[0] == 0
    assert len(ran.read_text().split("\n")) == 4
    assert blast("--out", out, "--benchmarks", scripts, "--again")[0] == 0
    assert ran.read_text().split("\n")[3:6] == [f"{one.script} --json" for one in BENCHMARKS]
    assert not list(out.glob("*.unfinished"))
    progress = []
    measure(SPEED_BENCHMARK, scripts, False, tmp_path, progress.append)
    assert progress == ["half way"]
    assert read(kept_in(tmp_path, SPEED_BENCHMARK), SPEED_BENCHMARK)["table_one"] == SPEED["table_one"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import sys; sys.exit('out of luck')", "gave no result: out of luck"),
        ("import sys; sys.stderr.write('bad end'); sys.exit(3)", "ended with status 3: bad end"),
        ("print('{}')", "gave no result"),
    ],
)
def test_failed_script_leaves_no_files(tmp_path, source, sentence):
    (tmp_path / "allocation_speed.py").write_text(source)
    with pytest.raises(MeasurementFailedError, match=sentence):
        measure(SPEED_BENCHMARK, tmp_path, True, tmp_path, lambda line: None)
    assert [path.name for path in tmp_path.iterdir()] == ["allocation_speed.py"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"table_one": [{"method": 1}]}', '{"table_one": []}', "[" * 100_000])
def test_malformed_result_is_rejected_in_one_sentence(tmp_path, text):
    kept_in(tmp_path, SPEED_BENCHMARK).write_text(text)
    with pytest.raises(InputError, match="use --again to repeat the measurement"):
        read(kept_in(tmp_path, SPEED_BENCHMARK), SPEED_BENCHMARK)


def test_command_measures_with_its_own_modules_without_scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = {one.script: _program(one, None) for one in BENCHMARKS}
    assert ran == {name: ["-m", f"blast_sim.papers.blast.measuring.{name}"] for name in RESULTS}
    for name in ran:
        assert find_spec(f"blast_sim.papers.blast.measuring.{name}") is not None


def test_measuring_modules_write_the_read_tables():
    folder = Path(measuring.__path__[0])
    for benchmark in BENCHMARKS:
        source = (folder / f"{benchmark.script}.py").read_text()
        assert all(f'"{table}"' in source for table in benchmark.columns)
        assert "--quick" in source
