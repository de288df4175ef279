"""`blast lab spark` without a lab: the Spark logs that it reads, its commands, and the options that it rejects."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_client.cli.command import main
from mininet_topos.kernel.errors import HostError, ProcessError
from mininet_topos.spark import installation
from mininet_topos.spark.cluster import SparkRun, Uplinks
from mininet_topos.spark.event_log import Iteration, iterations, read_event_log
from mininet_topos.spark.examples import EXAMPLES, Example, ExampleSize
from mininet_topos.spark.installation import SparkInstallation, find_spark
from mininet_topos.spark.picture import draw
from mininet_topos.spark.plan import spark_plan
from mininet_topos.spark.printed import Printed, distance, read_printed
from mininet_topos.spark.remote_reads import RemoteReads, read_remote_reads
from mininet_topos.spark.report import as_json, as_text
from mininet_topos.spark.trials import ALONE, PLUGIN, SparkTrial, Trials

MB = 1_000_000
LOOP = re.compile("^collect at als")

# ----------------------------------------------------------------------------------------------------------- Spark logs


class Log:
    """An event log as Spark 4 writes it, of an application that starts at second 1000."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._jobs = 0
        self._add("ApplicationStart", **{"App Name": "x", "App ID": "app-1", "Timestamp": 1_000_000, "User": "u"})

    def job(self, name: str, started: float, ended: float) -> Log:
        stages = [{"Stage ID": 7, "Stage Name": name}, {"Stage ID": 6, "Stage Name": "map at before"}]
        number, self._jobs = self._jobs, self._jobs + 1
        times = {"Submission Time": round(started * 1000)}
        self._add("JobStart", **{"Job ID": number, **times, "Stage Infos": stages, "Stage IDs": [6, 7]})
        end = {"Completion Time": round(ended * 1000), "Job Result": {"Result": "JobSucceeded"}}
        return self._add("JobEnd", **{"Job ID": number, **end})

    def block(self, name: str, memory: int, disk: int = 0, executor: str = "driver") -> Log:
        manager = {"Executor ID": executor, "Host": "10.0.1.1", "Port": 7079}
        info = {"Block Manager ID": manager, "Block ID": name, "Memory Size": memory, "Disk Size": disk}
        return self._add("BlockUpdated", **{"Block Updated Info": info})

    def end(self, second: float) -> Log:
        return self._add("ApplicationEnd", Timestamp=round(second * 1000))

    def write(self, folder: Path) -> Path:
        file = folder / "app-1"
        others = ['{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}', '{"Event":"SparkListenerTaskEnd"}']
        lines = [*others, *(json.dumps(event, separators=(",", ":")) for event in self.events)]
        file.write_text("\n".join(lines) + "\n")
        return file

    def _add(self, event: str, **fields: Any) -> Log:
        self.events.append({"Event": f"SparkListener{event}", **fields})
        return self


def als_log() -> Log:
    """Return two iterations of two jobs each, after a job of another kind, with the broadcasts of each."""
    log = Log().block("broadcast_0_piece0", 100).job("count at before", 1001, 1002)
    log.block("broadcast_1_piece0", 40).block("broadcast_1_piece1", 4, disk=6)
    log.job("collect at als.py:90", 1003, 1004).block("broadcast_2_piece0", 7)
    log.job("collect at als.py:98", 1005, 1006).block("broadcast_3_piece0", 300)
    log.job("collect at als.py:90", 1007, 1008).job("collect at als.py:98", 1009, 1010)
    return log.block("broadcast_4_piece0", 1).job("count at behind", 1011, 1012)


def test_event_log_has_named_jobs_and_times_of_application(tmp_path: Path) -> None:
    log = read_event_log(als_log().end(1020).write(tmp_path))
    assert (log.application, log.started, log.ended, log.seconds) == ("app-1", 1000.0, 1020.0, 20.0)
    assert [(job.name, job.started, job.ended) for job in log.jobs][:2] == [
        ("count at before", 1001.0, 1002.0),
        ("collect at als.py:90", 1003.0, 1004.0),
    ]


def test_broadcast_sizes_come_from_blocks_of_driver(tmp_path: Path) -> None:
    log = als_log()
    log.block("broadcast_3_piece0", 300, executor="2").block("broadcast_3_piece0", 0)  # fetched, and removed
    log.block("broadcast_3", 999).block("rdd_3_1", 999).block("taskresult_5", 999)  # the value itself, and others
    broadcasts = read_event_log(log.end(1020).write(tmp_path)).broadcasts
    assert [(one.id, one.bytes) for one in broadcasts] == [(0, 100), (1, 50), (2, 7), (3, 300), (4, 1)]
    assert broadcasts[1].pieces == {0: 40, 1: 10}
    assert [one.after_jobs for one in broadcasts] == [0, 1, 2, 3, 5]


def test_iteration_starts_at_end_of_previous_one(tmp_path: Path) -> None:
    log = read_event_log(als_log().end(1020).write(tmp_path))
    assert iterations(log, LOOP, 2) == (Iteration(1, 4.0, 57, 50), Iteration(2, 4.0, 300, 300))
    assert iterations(log, re.compile("nothing")) == ()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 99)), min_size=1, max_size=30), st.integers(1, 3))
def test_iterations_are_contiguous_and_count_each_broadcast_once(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[tuple[bool, int]], every: int
) -> None:
    log = Log()
    for number, (in_loop, size) in enumerate(jobs):
        log.block(f"broadcast_{number}_piece0", size + 1)
        log.job("collect at als.py" if in_loop else "other", 1001 + number, 1001.5 + number)
    read = read_event_log(log.end(2000).write(tmp_path_factory.mktemp("log")))
    found = iterations(read, LOOP, every)
    inside = [place for place, (in_loop, _) in enumerate(jobs) if in_loop]
    assert len(found) == len(inside) // every
    if found:
        first, last = inside[0], inside[len(found) * every - 1]
        before = read.jobs[first - 1].ended if first else read.started
        assert sum(one.seconds for one in found) == pytest.approx(read.jobs[last].ended - before)
        assert sum(one.broadcast_bytes for one in found) == sum(size + 1 for _, size in jobs[first : last + 1])


@pytest.mark.parametrize("cut", [lambda text: text, lambda text: text[:-9], lambda _text: ""])
def test_incomplete_event_log_is_rejected(tmp_path: Path, cut: Any) -> None:
    file = als_log().write(tmp_path)
    file.write_text(cut(file.read_text()))
    with pytest.raises(ProcessError, match="is no event log of an application that has ended"):
        read_event_log(file)


def test_remote_reads_count_each_piece_once_per_executor(tmp_path: Path) -> None:
    (tmp_path / "1").write_text(
        "12:00:00.001 DEBUG BlockManager: Getting remote block broadcast_1_piece0\n"
        "12:00:00.002 DEBUG BlockManager: Getting remote block broadcast_1_piece0 from BlockManagerId(driver, x, 1)\n"
        "12:00:00.003 DEBUG BlockManager: Getting remote block broadcast_1_piece1\n"
        "12:00:00.004 DEBUG BlockManager: Getting local block broadcast_3_piece0\n"
        "12:00:00.005 DEBUG BlockManager: Getting remote block taskresult_3\n"
    )
    (tmp_path / "2").write_text("12:00:00.001 DEBUG BlockManager: Getting remote block broadcast_1_piece1\n")
    reads = read_remote_reads([tmp_path / "1", tmp_path / "2"])
    assert reads.pieces == {(1, 0): 1, (1, 1): 2}
    assert reads.bytes_of(read_event_log(als_log().end(1020).write(tmp_path))) == 40 + 2 * 10


# ------------------------------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize("racks", [2, 3, 5, 32])
def test_spark_plan_has_large_splitter_and_equal_rates(racks: int) -> None:
    plan = spark_plan(racks, 40.0)
    assert (plan.racks, plan.hosts_per_rack) == (racks, 1)
    assert {plan.light_rate_mbps, plan.access_rate_mbps, plan.uplink_rate_mbps} == {40.0}
    assert racks == 2 or max(plan.splitters) >= racks - 1 > max(plan.splitters) // 2


def test_als_factors_have_requested_size() -> None:
    rows, users, factors, count, partitions = map(int, EXAMPLES["als"].arguments(ExampleSize(50 * MB, 4, 3)))
    assert 50 * MB <= users * factors * 8 < 50 * MB + 8 * factors
    assert (rows, count, partitions) == (3, 4, 3)


def numbers(line: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the numbers of a line, parsed like in the examples."""
    return np.array([float(word) for word in line.rstrip("\n").split(" ")])


def test_kmeans_points_are_one_file_per_executor_and_incompressible(tmp_path: Path) -> None:
    EXAMPLES["kmeans"].prepare(tmp_path, ExampleSize(MB, 1, 3))
    files = sorted((tmp_path / "points").iterdir())
    points = [numbers(line) for file in files for line in file.read_text().splitlines()]
    assert len(files) == 3 and len(points) >= 32
    assert all(8 * len(point) * 8 >= MB for point in points)
    center = np.mean(points[:3], axis=0)
    # Spark's LZ4 has no entropy coding, which is what zlib makes exponents smaller by.
    assert len(zlib.compress(center.tobytes())) > 0.85 * center.nbytes


def test_regression_data_prevents_early_convergence(tmp_path: Path) -> None:
    # The first two rows contradict each other, and the third one prevents that they cancel out.
    EXAMPLES["logistic_regression"].prepare(tmp_path, ExampleSize(80_000, 1, 2))
    rows = [numbers(file.read_text()) for file in sorted((tmp_path / "labeled").iterdir())]
    assert [row[0] for row in rows] == [-1, 1, -1]
    assert all(len(row) == 10_001 for row in rows)
    assert (rows[0][1:] == rows[1][1:]).all() and (rows[1][1:] != rows[2][1:]).any()


def test_lda_documents_have_expected_path_and_vocabulary(tmp_path: Path) -> None:
    EXAMPLES["lda"].prepare(tmp_path, ExampleSize(800_000, 1, 3))
    files = sorted((tmp_path / "data" / "mllib" / "sample_lda_libsvm_data.txt").iterdir())
    assert len(files) == 3
    for file in files:
        lines = [line.split() for line in file.read_text().splitlines()]
        words = [[int(pair.partition(":")[0]) for pair in pairs] for _, *pairs in lines]
        assert max(word for line in words for word in line) == 10_000
        assert all(line == sorted(set(line)) and line[0] >= 1 for line in words)


# --------------------------------------------------------------------------------------------------------------- trials

TURNING = Example("turning", "everything", "x.py", lambda size: [str(size.bytes)], re.compile("^turn"))


class ScriptedCluster:
    """A cluster that runs nothing and records its jobs, each with `iterations` iterations."""

    def __init__(self, folder: Path, iterations: int) -> None:
        self.folder, self._iterations = folder, iterations
        self.asked: list[tuple[Path, list[str], dict[str, str]]] = []

    def submit(
        self, script: Path, arguments: list[str], conf: dict[str, str], *, folder: Path, meanwhile: Any
    ) -> SparkRun:
        assert folder.is_dir()
        self.asked.append((script, arguments, conf))
        place = self.folder / "runs" / str(len(self.asked))
        place.mkdir(parents=True)
        log = Log()
        for number in range(self._iterations):
            log.block(f"broadcast_{number}_piece0", 100 + number).job("turn", 1001 + number, 1001.5 + number)
        (place / "output").write_text("result")
        read = read_event_log(log.end(1100).write(place))
        return SparkRun(9.0, place / "output", place / "errors", read, RemoteReads(Counter({(0, 0): 2})), UPLINKS, 0.5)


UPLINKS = Uplinks(606, 500, 100)


def trials_of(examples: list[Example], pairs: int, plugin: Path | None) -> Trials:
    spark = SparkInstallation(Path("spark"), Path("python"))
    return Trials(spark, examples, ExampleSize(MB, 3, 2), pairs, plugin)


def played(
    folder: Path, trials: Trials, iterations: int = 3
) -> tuple[ScriptedCluster, list[SparkTrial], list[tuple[str, str]]]:
    cluster = ScriptedCluster(folder, iterations)
    room: Any = SimpleNamespace(cluster=cluster, plugin_conf=lambda jar: {"spark.plugins": str(jar)})
    begun: list[tuple[str, str]] = []
    seen = list(trials.run(room, lambda *trial: begun.append(trial), lambda: None))
    return cluster, seen, begun


def test_trials_alternate_and_differ_only_in_plugin(tmp_path: Path) -> None:
    trials = trials_of([TURNING, replace(TURNING, name="other")], 2, Path("p.jar"))
    cluster, seen, begun = played(tmp_path, trials)
    one = [("turning", "data"), *(("turning", way) for way in (ALONE, PLUGIN, PLUGIN, ALONE))]
    assert begun == [*one, *(("other", way) for _, way in one)]
    assert trials.count == len(seen) == 8
    assert [trial.pair for trial in seen] == [0, 0, 1, 1] * 2
    with_plugin = [conf for (_, _, conf), trial in zip(cluster.asked, seen, strict=True) if trial.way == PLUGIN]
    alone = [conf for (_, _, conf), trial in zip(cluster.asked, seen, strict=True) if trial.way == ALONE]
    assert all(conf == {**alone[0], "spark.plugins": "p.jar"} for conf in with_plugin)
    assert all(conf == alone[0] for conf in alone)
    assert {(str(script), *arguments) for script, arguments, _ in cluster.asked} == {
        ("spark/examples/src/main/python/x.py", str(MB))
    }


def test_trial_reports_measurements_and_removes_files(tmp_path: Path) -> None:
    _, (trial,), _ = played(tmp_path, trials_of([TURNING], 1, None))
    assert [one.seconds for one in trial.iterations] == [1.5, 1.0, 1.0]
    assert (trial.iteration_seconds, trial.iteration_bytes) == (1.0, 101)
    assert (trial.broadcast_bytes, trial.remote_bytes) == (303, 200)
    assert (trial.uplink_bytes, trial.core_bytes, trial.light_bytes) == (606, 500, 100)
    assert trial.uplink_copies == 2.0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_trial_fails_if_iterations_are_missing(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="turning has 2 iterations in its event log, not 3"):
        played(tmp_path, trials_of([TURNING], 1, None), iterations=2)
    _, (trial,), _ = played(tmp_path / "fixed", trials_of([replace(TURNING, fixed=True)], 1, None), iterations=2)
    assert len(trial.iterations) == 2


@pytest.fixture
def trials(tmp_path: Path) -> list[SparkTrial]:
    return played(tmp_path, trials_of([TURNING, replace(TURNING, name="other")], 2, Path("p.jar")))[1]


def test_table_has_row_per_example_and_mode(trials: list[SparkTrial]) -> None:
    lines = as_text(spark_plan(4, 40.0), trials).splitlines()
    cells = [line.split() for line in lines if line.startswith(("turning", "other"))]
    assert [(row[0], row[1]) for row in cells] == [(e, w) for e in ("turning", "other") for w in (ALONE, PLUGIN)]
    assert all(row[2:] == ["2", "3", "1.0", "0.0", "9.0", "2.00", "33%", "50%", "the", "same"] for row in cells)


def test_results_are_compared_with_spark_alone(trials: list[SparkTrial], tmp_path: Path) -> None:
    def printed(text: str) -> Printed:
        (tmp_path / "output").write_text(text)
        return read_printed(tmp_path / "output")

    texts = iter(["x 1.0 -4", "x 1.08 -4", "x 1.32 -4", "x 1.4 -4", "x 1 2", "x 1", "y 1 2", "y 1 2"])
    changed = [replace(trial, printed=printed(next(texts))) for trial in trials]
    report = as_json(spark_plan(4, 40.0), changed)["runs"]
    assert [(run["way"], run["results"]) for run in report] == [
        (ALONE, "1e-01 off"),
        (PLUGIN, "2e-02 off"),
        (PLUGIN, "2e-02 off"),
        (ALONE, "1e-01 off"),
        (ALONE, "other"),
        (PLUGIN, "other"),
        (PLUGIN, "the same"),
        (ALONE, "other"),
    ]
    assert "1e-01 off" in as_text(spark_plan(4, 40.0), changed)
    assert as_json(spark_plan(4, 40.0), changed[:1])["runs"][0]["results"] is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_printed_numbers_round_trip(tmp_path_factory: pytest.TempPathFactory, numbers: list[float]) -> None:
    file = tmp_path_factory.mktemp("printed") / "output"
    file.write_text(f"weights: {numbers}")
    read = read_printed(file)
    assert read.numbers.tolist() == numbers
    assert distance(read, read) == 0.0


def test_json_report_has_all_fields(trials: list[SparkTrial]) -> None:
    report = json.loads(json.dumps(as_json(spark_plan(4, 40.0), trials)))
    assert (report["format"], report["lab"]["racks"], len(report["runs"])) == (1, 4, 8)
    run = report["runs"][1]
    assert (run["example"], run["way"], run["pair"], run["idle"]) == ("turning", PLUGIN, 0, 0.5)
    assert run["iterations"][1] == {"number": 2, "seconds": 1.0, "broadcast_bytes": 101, "largest_bytes": 101}
    assert (run["iteration_seconds"], run["uplink_copies"]) == (1.0, 2.0)


def test_picture_shows_every_example_and_mode(trials: list[SparkTrial], tmp_path: Path) -> None:
    picture, figures = draw(tmp_path / "p.svg", trials)
    assert len(figures.read_text().splitlines()) == 1 + 8 * 3
    text = picture.read_text()
    assert all(text.count(f">{word}<") == 1 for word in ("turning", "other", "Spark alone", "with the plugin"))


# --------------------------------------------------------------------------------------------------------- rejections


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--examples", "pi"], "there is no example 'pi'"),
        (["--rate-mbps", "20000"], "light_rate_mbps is 20000"),
        (["--picture", "nowhere/x.svg"], "in a folder that exists"),
    ],
)
def test_invalid_option_is_rejected_in_one_sentence(
    capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert main(["lab", "spark", *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_missing_spark_plugin_or_java_error_names_fix(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["lab", "spark", "--spark", str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith(": install it with scripts/setup spark\n")
    made(tmp_path)
    monkeypatch.setattr(installation.shutil, "which", lambda name: name)
    assert main(["lab", "spark", "--spark", str(tmp_path), "--plugin", str(tmp_path / "no.jar")]) == 1
    assert "build it with `mvn -q -f clients/java/pom.xml package -pl spark -am`" in capsys.readouterr().err
    monkeypatch.setattr(installation.shutil, "which", lambda _name: None)
    with pytest.raises(HostError, match="there is no Java"):
        find_spark(tmp_path)


def made(environment: Path) -> Path:
    """Create the files of pyspark that are looked for in an environment, and return its home."""
    home = environment / "lib" / "python3.11" / "site-packages" / "pyspark"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-class").touch()
    return home


def test_error_of_killed_job_suggests_memory() -> None:
    from mininet_topos.spark.cluster import _how_it_ended

    assert "perhaps for want of memory" in _how_it_ended(-9) and "fewer --racks" in _how_it_ended(-9)
    assert _how_it_ended(1) == "ended with status 1"
