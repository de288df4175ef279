"""A Spark cluster in the racks of a lab: the placement of executors, results of small jobs, and removal on a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.transfers.spark_bed.asking import AskedJob
from blast_api.ttypes import PartState
from blast_client import Client
from mininet_topos.kernel.errors import ProcessError
from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import down, marked_processes
from mininet_topos.spark.examples import ExampleSize, examples_of
from mininet_topos.spark.installation import find_plugin, find_spark
from mininet_topos.spark.plan import spark_plan
from mininet_topos.spark.trials import Trials
from tests.integration.frameworks.test_java_client import jar  # noqa: F401 - the fixture
from tests.support.waiting import HANGING, eventually

if TYPE_CHECKING:
    from mininet_topos.spark.room import SparkRoom

pytestmark = [pytest.mark.lab, pytest.mark.spark, pytest.mark.java, pytest.mark.timeout(900)]

BLAST = str(Path(sysconfig.get_path("scripts")) / "blast")
SIZE = 1_000_000
PLACEMENT = """
import json, os, socket, sys
from pyspark.sql import SparkSession


def reached(address):
    host, port = address.split(":")
    socket.create_connection((host, int(port)), 30).close()


def seen(_partition):
    reached(os.environ["BLAST_AGENT"])
    interfaces = sorted(name for _, name in socket.if_nameindex())
    yield {name: os.environ[name] for name in ("BLAST_HOST", "BLAST_FOLDER", "SPARK_LOCAL_IP")} | {"on": interfaces}


reached(sys.argv[1])
sc = SparkSession.builder.getOrCreate().sparkContext
found = sc.parallelize(range(2), 2).mapPartitions(seen).collect()
print(json.dumps({"driver": os.environ["BLAST_HOST"], "executors": found}))
"""


@pytest.fixture(scope="module")
def room() -> Iterator[SparkRoom]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.spark.room import spark_room

    with spark_room(spark_plan(3, 40.0), find_spark(), jobs=2) as room:
        yield room
        lab = room.lab.id
    assert not registry.memory(lab).exists()
    assert marked_processes(lab) == set()


def test_failed_job_raises_error_with_its_reason(room: SparkRoom, tmp_path: Path) -> None:
    script = tmp_path / "failing.py"
    script.write_text("raise SystemExit('there is nothing to do')")
    with pytest.raises(ProcessError, match=r"failing.py ended with status 1: .*there is nothing to do"):
        room.cluster.submit(script)


def test_executors_have_own_agents_and_driver_reaches_controller(room: SparkRoom, tmp_path: Path) -> None:
    script = tmp_path / "placement.py"
    script.write_text(PLACEMENT)
    run = room.cluster.submit(script, [room.plugin_conf(Path("none"))["spark.blast.controller"]])
    placement = json.loads(run.output.read_text())
    assert placement["driver"] == "r1h1"
    executors = {one["BLAST_HOST"]: one for one in placement["executors"]}
    assert sorted(executors) == ["r2h1", "r3h1"]
    for host, one in executors.items():
        assert one["SPARK_LOCAL_IP"] == room.cluster.address(host)
        assert Path(one["BLAST_FOLDER"]) == room.agents.folder(host)
        assert len(one["on"]) == 2, "a loopback and one cable"
    assert executors["r2h1"]["on"] != executors["r3h1"]["on"]
    assert "ERROR" not in run.errors.read_text()


def test_als_job_broadcasts_configured_size(room: SparkRoom) -> None:
    trials = Trials(find_spark(), examples_of("als"), ExampleSize(SIZE, 2, 2), 1, None)
    (trial,) = trials.run(room, lambda _example, _state: None, lambda: None)
    first, second = trial.iterations
    assert SIZE < second.largest_bytes <= second.broadcast_bytes < 1.1 * SIZE
    assert 0 < first.seconds + second.seconds < trial.seconds
    # Two executors fetch the factors twice each; those of the last iteration are not looked at any more.
    assert 4 * SIZE < trial.remote_bytes < 2 * trial.broadcast_bytes
    # Each byte of it leaves the driver at least once, and nothing was sent optically.
    assert trial.uplink_bytes > 2 * SIZE
    assert trial.core_bytes > 2 * SIZE
    assert trial.light_bytes < 0.01 * SIZE
    assert 0 <= trial.idle < 1


@pytest.mark.java
@pytest.mark.timeout(900)
def test_two_jobs_share_one_splitter_and_get_equal_data(
    room: SparkRoom,
    jar: Path,  # noqa: F811
) -> None:
    assert len(room.lab.plan.splitter_plans) == 1
    # A low rate gives readers a timeout that a loaded machine does not exceed.
    conf = {**room.plugin_conf(find_plugin()), "spark.blast.linkRate": "2m"}
    with AskedJob(room, "first", conf) as first, AskedJob(room, "second", conf) as second, ThreadPoolExecutor() as both:
        answers = list(both.map(lambda job: job.ask(4, 16_000_000), (first, second)))
    assert all(answer.equal for answer in answers)
    transports = first.transports + second.transports
    assert len(transports) == 8
    assert "spark" not in transports
    assert any("optical" in transport for transport in transports)
    with Client(room.lab.thrift) as client:
        assert not [*client.list_requests([PartState.PENDING, PartState.ACTIVE])]


@pytest.mark.java
@pytest.mark.timeout(900)
def test_executor_with_dead_agent_fetches_from_another_executor(
    room: SparkRoom,
    jar: Path,  # noqa: F811
) -> None:
    conf = {**room.plugin_conf(find_plugin()), "spark.blast.linkRate": "2m"}
    room.agents.kill("r3h1")
    try:
        with AskedJob(room, "dead", conf) as job:
            answer = job.ask(2, 16_000_000)
    finally:
        room.agents.restart("r3h1")
    assert answer.equal
    first, second = job.events["BroadcastSent"]
    assert (first["hosts"], second["hosts"]) == (1, 1)
    assert "r3h1: no agent, or one that failed recently" in second["reason"]
    hosts = {joined["executor"]: joined["host"] for joined in job.events["ExecutorJoined"]}
    taken = {
        hosts[one["executor"]]: one for one in job.events["BroadcastTaken"] if one["broadcast"] == second["broadcast"]
    }
    assert {host: (one["late"], one["reason"]) for host, one in taken.items()} == dict.fromkeys(
        ("r2h1", "r3h1"), (0, "")
    )


def test_terminated_command_leaves_no_processes_or_files(tmp_path: Path) -> None:
    options = ["--without-plugin", "--racks", "3", "--mb", "1", "--iterations", "1000"]
    command = [BLAST, "lab", "spark", *options, "--picture", str(tmp_path / "p.svg")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        (lab,) = eventually(lambda: registry.labs_built_by(running.pid), "the lab", within=4 * HANGING)
        runs = registry.memory(lab) / "spark" / "runs"
        eventually(lambda: list(runs.glob("*/events/*")) or running.poll(), "a job to run", within=20 * HANGING)
        processes = marked_processes(lab)
        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=20 * HANGING)
    finally:
        running.kill()
        running.wait()
        for left in registry.labs_built_by(running.pid):
            down(left)
    assert len(processes) > 10
    assert running.returncode == 143, output
    assert "Traceback" not in output
    assert marked_processes(lab) == set()
    assert not registry.memory(lab).exists() and not registry.directory(lab).exists()
    assert list(tmp_path.iterdir()) == []
