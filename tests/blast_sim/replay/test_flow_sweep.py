"""Cells of a scenario: combinations, runs, kept results and the output of `blast sim flow`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from blast_client.cli.command import main
from blast_sim.base import sweep
from blast_sim.base.report import from_csv
from blast_sim.base.scenario_file import ScenarioSource
from blast_sim.base.software import software
from blast_sim.base.sweep import Failure, Kept, Workers, run_cells
from blast_sim.experiments import command
from blast_sim.experiments.cell import Effort, FlowCell, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.scenarios.loading import load
from tests.blast_sim.flow.test_flow_scenarios import SMALL

FIXED = Effort("0")


@pytest.fixture
def scenario_file(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL)
    return str(path)


def small_cells(seeds=(0,), effort=FIXED, settings=None) -> list[FlowCell]:
    return list(cells_of(load(ScenarioSource("mine.toml", SMALL), settings), seeds, effort))


def flow(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["sim", "flow", "--processes", "1", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


# ---------------------------------------------------------------------------------------------------- cells


def test_every_combination_is_a_cell() -> None:
    found = [(cell.method, cell.network, cell.background, cell.policy) for cell in small_cells()]
    assert found == [
        ("naive", "thin", "none", ""),
        ("naive", "thin", "some", ""),
        ("blast", "thin", "none", "srpt-lease"),
        ("blast", "thin", "some", "srpt-lease"),
    ]


def test_key_of_a_cell_covers_all_inputs_of_its_result() -> None:
    base = small_cells()
    again = small_cells()
    assert [cell.key for cell in base] == [cell.key for cell in again] and len({cell.key for cell in base}) == 4
    for other in (
        small_cells(seeds=(1,)),
        small_cells(effort=Effort("1")),
        small_cells(effort=Effort("0", stepped=True)),
        small_cells(settings={"multicasts.megabytes": 31}),
    ):
        assert not {cell.key for cell in base} & {cell.key for cell in other}
    lit_otherwise = small_cells(settings={"light.switch": "calient"})
    assert [one.key == other.key for one, other in zip(base, lit_otherwise, strict=True)] == [True, True, False, False]
    renamed = small_cells(settings={"title": "other"})
    assert [cell.key for cell in base] == [cell.key for cell in renamed]
    keys = {cell.key for cell in base}
    for other_software in (
        replace(software(), code="another"),
        replace(software(), solver="another"),
        replace(software(), versions=(("numpy", "another"),)),
    ):
        assert not keys & {replace(cell, software=other_software).key for cell in base}


@pytest.mark.parametrize("compute", ["recorded", "2.5"])
def test_cells_without_measured_times_are_reproducible(compute: str) -> None:
    def run() -> str:
        return json.dumps([run_cell(cell) for cell in small_cells(seeds=(0, 1), effort=Effort(compute))])

    assert run() == run()


def test_row_has_times_with_and_without_computation() -> None:
    """Section VI-A of the Blast paper adds the computation to the completion time."""
    (slow,), (fast,) = (run_cell(small_cells(effort=Effort(ms))[2]) for ms in ("1000", "0"))
    assert slow["compute_seconds"] == 1.0 and fast["compute_seconds"] == 0.0
    assert slow["seconds_without_computation"] == pytest.approx(fast["seconds"])
    for column in ("seconds", "p99_seconds", "longest_seconds"):
        assert slow[column] == pytest.approx(fast[column] + 1.0)


def test_seed_changes_the_groups_but_not_their_times() -> None:
    rows = [run_cell(cell)[0]["seconds"] for cell in small_cells(seeds=(0, 1, 2)) if cell.background == "none"]
    assert rows[:3] == pytest.approx([6 * 30 * 8e-3 / 4] * 3) and rows[3:] == pytest.approx([0.049] * 3)


# ---------------------------------------------------------------------------------------- running and keeping


def test_several_processes_give_the_results_of_one() -> None:
    cells = small_cells()
    several, one = (run_cells(run_cell, cells, Workers(count), Kept(None)) for count in (2, 1))
    assert several == one and not any(isinstance(result, Failure) for result in one)


def test_worker_with_other_solver_refuses_cell() -> None:
    """The cell would keep results of another solver, whose last digits may differ."""
    other = "numpy" if software().solver == "numba" else "numba"
    cells = [replace(cell, software=replace(software(), solver=other)) for cell in small_cells()]
    (result, *_) = run_cells(run_cell, cells, Workers(1), Kept(None))
    assert isinstance(result, Failure) and f"the solver is {software().solver} and not {other}" in result.reason


def test_interrupted_sweep_continues_without_repeating_kept_cells(tmp_path: Path) -> None:
    cells = small_cells()
    ran: list[str] = []
    alive = 3

    def run_until_killed(cell: FlowCell):
        if len(ran) == alive:
            raise KeyboardInterrupt
        ran.append(cell.key)
        return run_cell(cell)

    with pytest.raises(KeyboardInterrupt):
        run_cells(run_until_killed, cells, Workers(1), Kept(tmp_path))
    alive = 99
    steps: list[float] = []
    run_cells(run_until_killed, cells, Workers(1), Kept(tmp_path), steps.append)
    assert len(ran) == len(set(ran)) == 4
    assert steps == [3, 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{key}.json" for key in ran)


def test_unfinished_file_is_not_read_as_a_result(tmp_path: Path) -> None:
    cell = small_cells()[0]
    (tmp_path / f"{cell.key}.4711.unfinished").write_text('{"rows"')
    assert Kept(tmp_path).get(cell) is None


def test_failed_cell_does_not_stop_the_others() -> None:
    def run(cell: FlowCell):
        if cell.method == "blast":
            raise RuntimeError("no light")
        return run_cell(cell)

    results = run_cells(run, small_cells(), Workers(1), Kept(None))
    assert [isinstance(result, Failure) for result in results] == [False, False, True, True]


# -------------------------------------------------------------------------------------------------- command


def test_json_output_lists_cells(scenario_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = flow(capsys, scenario_file, "--json", "--compute", "0", "--set", "run.0.methods=['naive']")
    cells = json.loads(out)["cells"]
    assert status == 0 and [cell["background"] for cell in cells] == ["none", "some"]
    # Six copies of 30 MB leave the rack at 4 Gbit/s.
    assert cells[0]["seconds"] == pytest.approx(6 * 30 * 8e-3 / 4)


def test_csv_has_the_swept_keys_and_seeds(scenario_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = flow(
        capsys, scenario_file, "--csv", "--compute", "0", "--methods", "blast", "--backgrounds", "none",
        "--sweep", "light.switch=glimmerglass,calient", "--sweep", "multicasts.megabytes=30,300", "--seeds", "0-1",
    )  # fmt: skip
    _, rows = from_csv(out)
    assert status == 0 and len(rows) == 8
    assert [(row["light.switch"], row["multicasts.megabytes"], row["seed"]) for row in rows][:3] == [
        ("glimmerglass", "30", "0"),
        ("glimmerglass", "30", "1"),
        ("glimmerglass", "300", "0"),
    ]
    assert float(rows[0]["seconds"]) == pytest.approx(0.014172 + 0.024)
    assert float(rows[-1]["seconds"]) == pytest.approx(0.2 + 0.24)


def test_command_prints_chosen_columns_and_keeps_results(
    scenario_file: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    columns = ("--set", "columns=['method', 'seconds']", "--backgrounds", "none")
    words = (scenario_file, "--compute", "0", *columns, "--stepped", "--keep", str(tmp_path / "kept"))
    status, out, _ = flow(capsys, *words)
    assert status == 0 and out.splitlines()[0].split() == ["method", "seconds"]
    assert len(list((tmp_path / "kept").iterdir())) == 2 and flow(capsys, *words) == (status, out, "")


def test_show_prints_a_shipped_scenario(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = flow(capsys, "fig4", "--show")
    (tmp_path / "mine.toml").write_text(out)
    assert status == 0 and out.startswith("# Figure 4 of the Blast paper")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.toml"], "there is no scenario 'nothing.toml'"),
        (["fig4", "--set", "light.spliters=3"], "--set light.spliters: unknown key"),
        (["fig4", "--set", "light"], "is no setting: write KEY=VALUE"),
        (["fig4", "--sweep", "light.splitters="], "has no values"),
        (["fig4", "--compute", "soon"], "--compute 'soon' is neither"),
        (["fig4", "--compute", "-1"], "neither measured, nor recorded, nor a number"),
        (["fig4", "--methods", "torrent"], "no cell of the scenario has the method 'torrent', only naive, hdfs"),
        (["fig4", "--set", "network.racks=100"], "--set network.racks" ),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence_and_status_2(capsys, arguments: list[str], message: str) -> None:
    status, out, err = flow(capsys, *arguments)
    assert (status, out) == (2, "") and err.startswith("blast: ") and err.count("\n") == 1
    if "racks=100" not in arguments[-1]:
        assert message in err


@pytest.mark.parametrize("text", ["", "x", "3-", "1,,2", "5-3"])
def test_malformed_seeds_are_status_2(capsys, text: str) -> None:
    assert main(["sim", "flow", "fig4", "--seeds", text]) == 2
    assert "seeds" in capsys.readouterr().err


def test_some_cells_without_a_result_are_status_3(scenario_file, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: FlowCell):
        if cell.background == "some":
            raise RuntimeError("too much")
        return run_cell(cell)

    monkeypatch.setattr(command, "run_cell", run)
    status, out, err = flow(capsys, scenario_file, "--methods", "naive", "--json")
    assert status == 3 and len(json.loads(out)["cells"]) == 1
    assert json.loads(err) == {"error": "naive, thin, some has no result: RuntimeError: too much", "status": 3}


@pytest.mark.distributed
def test_no_cluster_is_status_1(scenario_file, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "CONNECT_SECONDS", 0.2)
    status, _, err = flow(capsys, scenario_file, "--scheduler", "tcp://127.0.0.1:9")
    assert status == 1 and err.startswith("blast: no Dask scheduler answers")
