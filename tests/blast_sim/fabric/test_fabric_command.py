"""`blast sim fabric`: scenarios, options and output, with a fake program in place of the simulator."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from blast_sim.base.report import from_csv
from blast_sim.base.scenario_file import find_in, shipped_in
from blast_sim.base.wrong_input import InputError
from blast_sim.fabric import memory, running
from blast_sim.fabric.memory import runs_at_once
from blast_sim.fabric.scenario import load
from blast_sim.fabric.simulator import VARIABLE, NoSimulatorError, RunFailedError, Simulator, StoppedError, program
from tests.support.simulators.fake_rack_fabric import write_fake
from tests.support.simulators.results import results_of
from tests.support.simulators.sim_output import run
from tests.support.waiting import eventually

SMALL = """\
title = "small"
seed = 1
duration_ns = 1000

[topology]
leaves = 5
spines = 0

[[flows]]
name = "m"
source = [0, 0]
to = [
  [0, 1],
  [1, 0]
]
frame_bytes = 1522
rate_gbps = 99

[[flows]]
name = "u"
source = [2, 0]
to = [[3, 1]]
frame_bytes = 512
rate_gbps = 10

[fake]
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_fake(tmp_path)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def fabric(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    return run(capsys, "sim", "fabric", *words)


@pytest.fixture
def scenario(tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a scenario file in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(SMALL)
    return "mine.toml"


# -------------------------------------------------------------------------------------------------- results


def test_json_lists_cells_with_scenario_and_results(scenario: str, capsys) -> None:
    status, out, err = fabric(capsys, scenario, "--json", "--seeds", "7")
    (cell,) = json.loads(out)["cells"]
    assert (status, err) == (0, "") and cell["settings"] == {}
    assert cell["scenario"]["topology"] == {"leaves": 5, "spines": 0} and "title" not in cell["scenario"]
    assert cell["results"]["delivered_copies"] == 21 and cell["results"]["seed"] == 7


def test_csv_has_a_row_for_each_destination_of_each_cell(scenario: str, capsys) -> None:
    swept = ["--sweep", "flows.0.rate_gbps=50,99", "--sweep", "flows.0.frame_bytes=512", "--seeds", "3-4"]
    status, out, _ = fabric(capsys, scenario, "--csv", *swept)
    _, rows = from_csv(out)
    assert status == 0 and len(rows) == 4 * 3
    assert list(rows[0]) == [
        "flows.0.rate_gbps", "flows.0.frame_bytes", "seed", "flow", "leaf", "port", "gbps", "copies", "mean_delay_ns",
    ]  # fmt: skip
    cells = [(row["flows.0.rate_gbps"], row["flows.0.frame_bytes"], row["seed"]) for row in rows[::3]]
    assert cells[:3] == [("50", "512", "3"), ("50", "512", "4"), ("99", "512", "3")]
    assert [(row["flow"], row["leaf"], row["port"], row["gbps"]) for row in rows[-3:]] == [
        ("m", "0", "1", "99"),
        ("m", "1", "0", "99"),
        ("u", "3", "1", "10"),
    ]


def test_rerun_reports_a_cell_that_the_simulator_refuses(scenario: str, fake: Path, capsys) -> None:
    assert fabric(capsys, scenario, "--keep", "kept")[0] == 0
    (kept,) = Path("kept").iterdir()
    assert run(capsys, "sim", "rerun", str(kept))[0] == 0
    fake.write_text(fake.read_text().replace('"topology", ', ""))
    status, _, err = run(capsys, "sim", "rerun", str(kept))
    assert status == 2 and err.count("\n") == 1
    assert "this version does not take its request: unknown field `topology`." in err, err


def test_default_output_is_a_table(scenario: str, capsys) -> None:
    status, out, _ = fabric(capsys, scenario)
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["flow", "leaf", "port", "gbps", "copies", "mean_delay_ns"],
        ["m", "0", "1", "99", "7", "1.5"],
        ["m", "1", "0", "99", "7", "1.5"],
        ["u", "3", "1", "10", "7", "1.5"],
    ]


def test_options_override_the_sweep_of_a_file(scenario: str, capsys) -> None:
    Path(scenario).write_text(SMALL + '[sweep]\n"flows.1.rate_gbps" = [1, 2]\nduration_ns = [10]\n')
    _, out, _ = fabric(capsys, scenario, "--json")
    settings = [cell["settings"] for cell in json.loads(out)["cells"]]
    assert settings == [{"flows.1.rate_gbps": rate, "duration_ns": time} for rate in (1, 2) for time in (10,)]
    _, out, _ = fabric(capsys, scenario, "--json", "--set", "duration_ns=30", "--sweep", "flows.1.rate_gbps=3")
    (cell,) = json.loads(out)["cells"]
    assert cell["settings"] == {"flows.1.rate_gbps": 3} and cell["results"]["duration_ns"] == 30


def test_show_prints_a_shipped_scenario(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nothing-there")
    status, out, _ = fabric(capsys, "one-leaf", "--show")
    assert status == 0 and out.startswith("# One server of a leaf multicasts")


@pytest.mark.parametrize("name", shipped_in("blast_sim.fabric.scenarios"))
def test_shipped_scenarios_can_be_read(name: str) -> None:
    assert load(find_in("blast_sim.fabric.scenarios", name), {}).model["flows"]


# ------------------------------------------------------------------------------------------------ kept results


def test_kept_cells_run_again_only_with_another_program(scenario: str, fake: Path, capsys) -> None:
    arguments = [scenario, "--json", "--set", "fake.log=runs.txt", "--keep", "kept", "--sweep", "duration_ns=10,20"]
    first = fabric(capsys, *arguments)
    again = fabric(capsys, *arguments, "--set", "title=other")
    assert results_of(again[1]) == results_of(first[1]) and first[0] == 0
    assert len(Path("runs.txt").read_text().split()) == 2
    fake.write_text(fake.read_text() + "\n# another\n")
    fabric(capsys, *arguments)
    assert len(Path("runs.txt").read_text().split()) == 4


def test_cells_without_a_result_are_reported(scenario: str, capsys) -> None:
    status, out, err = fabric(capsys, scenario, "--json", "--sweep", "fake.status=0,3")
    assert status == 1 and json.loads(out)["cells"] == [] and err.count("\n") == 2
    status, out, err = fabric(capsys, scenario, "--json", "--sweep", "fake.seconds=0,soon")
    assert status == 3 and len(json.loads(out)["cells"]) == 1
    error = json.loads(err)
    assert error["error"].startswith("fake.seconds = soon has no result: RunFailedError: ") and error["status"] == 3
    assert "status 1: TypeError" in error["error"]


# ---------------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.toml"], "there is no scenario 'nothing.toml': name a file, or one of one-leaf"),
        (["mine.toml", "--set", "flows.1.rate_gbps=101"], "--set flows.1.rate_gbps: flows.1.rate_gbps: a flow has"),
        (["mine.toml", "--sweep", "flows.1.rate_gbps=1,0"], "--sweep flows.1.rate_gbps: flows.1.rate_gbps: a flow"),
        (["mine.toml", "--set", "flows.0.rate_gbps=inf"], "--set flows.0.rate_gbps: flows.0.rate_gbps must be a fin"),
        (["mine.toml", "--set", "duration_ns=0x1" + "0" * 4000], "duration_ns must be a number of 64 bits"),
        (["mine.toml", "--set", "seed=2026-01-01"], "--set seed: seed must be a number, a text or a truth value, not"),
        (["mine.toml", "--set", "title=3"], "--set title: title must be a text"),
        (["mine.toml", "--set", "sweep=3"], "--set sweep: sweep must be a table of keys and their values"),
        (["mine.toml", "--set", "sweep.seed=3"], "--set sweep.seed: seed must have a list of values here"),
        (["mine.toml", "--set", "flows.7.rate_gbps=3"], "--set flows.7.rate_gbps: there is no table to set"),
        (["mine.toml", "--trace", "t", "--seeds", "1-2"], "--trace records the events of one local cell"),
        (["mine.toml", "--trace", "none/t"], "--trace: there is no folder none"),
        (["mine.toml", "--trace", "/dev/null"], "--trace: /dev/null is not a file"),
        (["mine.toml", "--set", f"fake.memory_bytes={10**18}"], "a run needs 1000000000.00 GB of memory, but "),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(scenario: str, capsys, arguments: list[str], message: str) -> None:
    status, out, err = fabric(capsys, *arguments)
    assert (status, out) == (2, "") and err.startswith("blast: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("rate_gbps = 99", "rate_gbps = 990", 17, "flows.0.rate_gbps: a flow has more than 0 and up to 100 Gb/s"),
        ("frame_bytes = 512", "frame_byte = 512", 23, "flows.1.frame_byte: unknown field `frame_byte`"),
        ("leaves = 5", "leaves = nan", 6, "topology.leaves must be a finite number, not nan"),
        ("[fake]", '[sweep]\n"flows.0.rate_gbps" = [50,\n  -1]', 27, "flows.0.rate_gbps: a flow has"),
        ("[fake]", "[sweep]\nflows.rate_gbps = [50]", 27, "flows must have a list of values here, and a dotted key"),
        ("[fake]", "[sweep]\nseed = []", 27, "seed must have a list of values here"),
        ("flows", "flow", 9, "flow: unknown field `flow`"),
    ],
)
def test_error_in_a_scenario_file_names_its_line(
    scenario: str, capsys, old: str, new: str, line: int, message: str
) -> None:
    Path(scenario).write_text(SMALL.replace(old, new))
    status, _, err = fabric(capsys, scenario)
    assert status == 2 and err.startswith(f"blast: mine.toml:{line}: {message}") and err.count("\n") == 1


# ------------------------------------------------------------------------------------------------ the program


def test_missing_simulator_error_names_the_setup_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    status, out, err = fabric(capsys, "one-leaf")
    assert (status, out) == (1, "") and err.count("\n") == 1
    assert "run make setup in a checkout, which needs Rust 1.85" in err


def test_simulator_is_found_beside_python_and_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        write_fake(folder)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(there))
    assert program() == there / "rack-fabric"
    monkeypatch.setattr("sys.executable", str(here / "python"))
    assert program() == here / "rack-fabric"
    monkeypatch.setenv(VARIABLE, str(there / "rack-fabric"))
    assert program() == there / "rack-fabric"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(NoSimulatorError, match="which is no program: correct it, or unset it"):
        program()


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ({"error": "the trace cannot be written"}, "^the trace cannot be written$"),
        ({"status": 101, "stderr": "thread 'main' panicked"}, "ended with status 101: thread 'main' panicked$"),
        ({"status": 3}, "ended with status 3$"),
        ({"signal": 9}, "was ended by signal 9, perhaps for want of memory$"),
        ({"answers": "{"}, "succeeded without results"),
        ({"answers": "[]"}, "succeeded without results"),
    ],
)
def test_failed_run_is_reported_in_one_sentence(fake: Path, behavior: dict[str, object], message: str) -> None:
    with pytest.raises(RunFailedError, match=message):
        Simulator(fake).run({"duration_ns": 1, "flows": [], "fake": behavior})


def test_failed_check_is_reported_in_one_sentence(fake: Path) -> None:
    with pytest.raises(RunFailedError, match="does not estimate a run"):
        Simulator(fake).check({"duration_ns": "soon", "flows": []})
    fake.write_text("no program")
    with pytest.raises(RunFailedError):
        Simulator(fake).check({})


def test_simulator_takes_a_scenario_larger_than_a_pipe(fake: Path) -> None:
    shares: list[float] = []
    flow = {"name": "m" * 300, "source": [0, 0], "to": [[0, 1]] * 9, "frame_bytes": 1522, "rate_gbps": 1}
    results = Simulator(fake).run({"duration_ns": 10, "flows": [flow] * 1000}, shares.append)
    assert results["delivered_copies"] == 63_000 and shares == [0.5]


def test_stop_ends_running_simulations_and_starts_no_more(fake: Path, tmp_path: Path) -> None:
    simulator, log = Simulator(fake), tmp_path / "log"
    failures: list[Exception] = []

    def begin() -> None:
        try:
            simulator.run({"duration_ns": 10, "flows": [], "fake": {"seconds": 600, "log": str(log)}})
        except RunFailedError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    eventually(lambda: log.exists() and len(log.read_text().split()) == 2, "two runs")
    simulator.stop()
    for thread in threads:
        thread.join()
    assert len(failures) == 2
    for number in log.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)
    with pytest.raises(StoppedError):
        simulator.run({"duration_ns": 10, "flows": []})


# ----------------------------------------------------------------------------------------------------- trace


def test_failed_run_leaves_no_partial_trace(scenario: str, capsys) -> None:
    status, _, _ = fabric(capsys, scenario, "--trace", "events.bin")
    assert status == 0 and Path("events.bin").read_bytes().startswith(b"BLASTRF1")
    Path("events.bin").unlink()
    for before in ([], [("events.bin", b"before")]):
        for name, data in before:
            Path(name).write_bytes(data)
        status, _, err = fabric(capsys, scenario, "--trace", "events.bin", "--set", "fake.error=broken")
        assert status == 1 and "RunFailedError: broken" in err
        left = {path.name: path.read_bytes() for path in Path().iterdir()}
        assert [(name, left[name]) for name in left.keys() - {"mine.toml", "rack-fabric"}] == before


# ---------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("max_processes", "needs", "available", "runs"),
    [(4, [10, 10, 10], 100, 3), (2, [10, 10, 10], 100, 2), (4, [60, 30, 30, 1], 100, 2), (4, [99, 98], 100, 1)],
)
def test_parallel_runs_are_limited_by_memory(max_processes: int, needs: list[int], available: int, runs: int) -> None:
    assert runs_at_once(max_processes, needs, available) == runs


def test_run_larger_than_memory_is_rejected() -> None:
    with pytest.raises(InputError, match=r"^a run needs 0.02 GB of memory, but 1.00 MB are available: use fewer"):
        runs_at_once(4, [10, 20_000_000], 1_000_000)


def test_available_memory_is_read_from_meminfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    everything = memory.available_bytes()
    (tmp_path / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:     42 kB\n")
    assert memory.available_bytes() == 42 * 1024 < everything


def test_command_runs_fewer_cells_at_once_with_little_memory(
    scenario: str, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = running.run_cells

    def seen(work, cells, workers, kept, progress):
        asked.append(workers.processes)
        return real(work, cells, workers, kept, progress)

    monkeypatch.setattr(running, "run_cells", seen)
    monkeypatch.setattr(running, "available_bytes", lambda: 2500)
    arguments = [scenario, "--processes", "8", "--sweep", "seed=1,2,3", "--json"]
    status, out, _ = fabric(capsys, *arguments)
    assert status == 0 and len(json.loads(out)["cells"]) == 3 and asked == [2]


def test_parallel_cells_keep_their_order(scenario: str, capsys) -> None:
    status, out, _ = fabric(capsys, scenario, "--processes", "4", "--sweep", "fake.seconds=0.3,0,0.1,0.2", "--json")
    assert status == 0
    assert [cell["settings"]["fake.seconds"] for cell in json.loads(out)["cells"]] == [0.3, 0, 0.1, 0.2]
