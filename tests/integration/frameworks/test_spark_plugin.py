"""An unmodified Spark job with the plugin: a real cluster of two executors, real agents, real faults."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.frameworks.test_java_client import jar  # noqa: F401 - the fixture
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.transport.spark_cluster import BLAST, PYTHON, ROOT, agent_process, in_spark
from tests.support.waiting import look_until

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.test_all, pytest.mark.timeout(900)]

JAR = ROOT / "clients" / "java" / "spark" / "target" / "blast-spark-0.1.0.jar"
JOB = ROOT / "tests" / "support" / "transport" / "spark_job.py"

SLOW = 180.0
"""Seconds in which a cluster of this machine has certainly done what it was asked to."""


class Job:
    """A running application that executes commands."""

    def __init__(self, process: subprocess.Popen[str], events: Path) -> None:
        self.process, self._events = process, events
        self.application: str = self._answer()["application"]

    def __call__(self, command: str, *arguments: float) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps([command, *arguments])}\n")
        self.process.stdin.flush()
        return self._answer()

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of this kind that Spark's event log has by now."""
        lines = [line for path in self._events.rglob("*") if path.is_file() for line in path.read_text().splitlines()]
        # The last one may be half written.
        return [json.loads(line) for line in lines if line.endswith("}") and f'"Event":"{kind}"' in line]

    def until(self, kind: str, number: int) -> list[dict[str, Any]]:
        """Return all events of this kind, once there are at least `number`."""
        return look_until(lambda: self.events(kind), lambda seen: len(seen) >= number, f"{number} {kind}", SLOW)

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        return self.process.wait(SLOW)

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the job has ended: {self.process.wait(SLOW)}"
        return json.loads(line)


@contextmanager
def job(folder: Path, master: str, settings: Mapping[str, object], python: str = PYTHON) -> Iterator[Job]:
    """Run an application on this master with these settings and all its files in `folder`; `python` has Spark."""
    events = folder / "events"
    events.mkdir(parents=True)
    fixed = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events,
        "spark.executor.memory": "512m",
    }
    words = ["--master", master]
    for name, value in {**fixed, **settings}.items():
        words += ["--conf", f"{name}={value}"]
    submitted = shlex.join([*words, "pyspark-shell"])
    with in_spark([python, str(JOB)], folder, python, PYSPARK_SUBMIT_ARGS=submitted) as process:
        yield Job(process, events)


def await_removal(path: Path) -> None:
    """Wait until nothing of this name is there any more."""
    look_until(path.exists, lambda there: not there, f"{path} to go", SLOW)


SENT, TAKEN, JOINED = (f"org.blast.spark.{event}" for event in ("BroadcastSent", "BroadcastTaken", "ExecutorJoined"))
MEGABYTES = 20
BY_LIGHT = {"spark.blast.via": "optical"}
"""With `auto`, the pipeline starts first if a loaded machine takes more than 0.1 s to grant."""
PIECES = 5
"""Pieces of 4 MiB into which Spark divides `MEGABYTES`."""


@dataclass
class World:
    """An application, the agents and controllers that serve it, and the number of its broadcasts."""

    job: Job
    received: Path
    agents: ExitStack
    controllers: ExitStack
    sent: int = 0

    def broadcast(self, megabytes: float = MEGABYTES) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Broadcast by Blast; return the event of the driver, and the events of the executors."""
        assert self.job("broadcast", megabytes) == {"equal": True, "tasks": 4}
        self.sent += 1
        sent = self.job.until(SENT, self.sent)[-1]
        taken = [one for one in self.job.until(TAKEN, 2 * self.sent) if one["broadcast"] == sent["broadcast"]]
        return sent, taken

    def files(self) -> list[str]:
        """Return the names of the files in the application's folder at the agent, without the claim."""
        return [path.name for path in (self.received / self.job.application).iterdir() if path.name != ".claim"]


@pytest.fixture(scope="module")
def settings(jar: Path) -> dict[str, object]:  # noqa: F811
    """Return the settings that turn the plugin on, and no others."""
    return {
        "spark.plugins": "org.blast.spark.BlastPlugin",
        "spark.driver.extraClassPath": JAR,
        "spark.executor.extraClassPath": JAR,
        "spark.blast.command": BLAST,
        "spark.blast.host": "h11",
        "spark.blast.lightAddress": "127.0.0.1",
        # A low rate gives readers a timeout that a loaded machine does not exceed.
        "spark.blast.linkRate": "2m",
        "spark.executorEnv.BLAST_HOST": "h21",
    }


@contextmanager
def world(folder: Path, settings: dict[str, object], python: str = PYTHON) -> Iterator[World]:
    with ExitStack() as stack:
        agents, controllers = stack.enter_context(ExitStack()), stack.enter_context(ExitStack())
        received = folder / "received"
        where = agents.enter_context(agent_process(received))
        _, host, port = controllers.enter_context(serving(MemoryController()))
        more = {
            "spark.blast.controller": f"{host}:{port}",
            "spark.executorEnv.BLAST_AGENT": where,
            "spark.executorEnv.BLAST_FOLDER": received,
        }
        running = stack.enter_context(job(folder / "job", "local-cluster[2,1,1024]", settings | more, python))
        yield World(running, received, agents, controllers)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, object]) -> Iterator[World]:
    """Yield an application for the tests that leave it unchanged."""
    with world(tmp_path_factory.mktemp("world"), settings | BY_LIGHT) as made:
        made.job.until(JOINED, 2)
        yield made


def test_plugin_sends_every_piece_optically_and_leaves_no_file(running: World) -> None:
    sent, taken = running.broadcast()
    assert (sent["way"], sent["hosts"], sent["reason"]) == ("optical", 1, "")
    assert [(one["pieces"], one["late"], one["reason"]) for one in taken] == [(PIECES, 0, "")] * 2
    assert {one["executor"] for one in taken} == {"0", "1"}
    assert all(one["bytes"] >= MEGABYTES * 1e6 for one in taken)
    look_until(running.files, lambda files: not files, "the file's name to go: it is mapped")


def test_plugin_ignores_small_broadcast(running: World) -> None:
    assert running.job("broadcast", 1) == {"equal": True, "tasks": 4}
    assert len(running.job.events(SENT)) == running.sent


def test_next_broadcast_after_unpersist_is_optical(running: World) -> None:
    running.broadcast()
    running.job("unpersist")
    sent, taken = running.broadcast()
    assert sent["way"] == "optical" and all(one["late"] == 0 for one in taken)
    running.job("destroy")


def test_broadcast_survives_loss_of_controller_agent_and_sender(tmp_path: Path, settings: dict[str, object]) -> None:
    with world(tmp_path, settings) as made:
        made.job.until(JOINED, 2)
        made.controllers.close()
        sent, taken = made.broadcast()
        assert sent["way"] == "pipeline" and sent["reason"].startswith("not optical: ")
        assert [(one["pieces"], one["late"]) for one in taken] == [(PIECES, 0)] * 2
        made.agents.close()
        sent, taken = made.broadcast()
        assert (sent["way"], sent["hosts"]) == ("spark", 0) and "h21" in sent["reason"]
        assert [(one["pieces"], one["late"]) for one in taken] == [(0, PIECES)] * 2
        [sender] = senders(made.job.process.pid)
        os.kill(sender, signal.SIGKILL)
        look_until(lambda: senders(made.job.process.pid), lambda left: not left, "the sender to be gone")
        assert made.job("broadcast", MEGABYTES) == {"equal": True, "tasks": 4}
        assert len(made.job.events(SENT)) == made.sent
        assert made.job.end() == 0


def test_killed_application_leaves_no_files_or_processes(tmp_path: Path, settings: dict[str, object]) -> None:
    with world(tmp_path, settings | BY_LIGHT | {"spark.scheduler.minRegisteredResourcesRatio": "1.0"}) as made:
        assert made.job("broadcast", MEGABYTES)["equal"]
        assert made.job.until(SENT, 1)[0]["way"] == "optical"
        # An executor that joins after the others have it is not notified.
        taken = made.job.until(TAKEN, 1)
        assert all((one["pieces"], one["late"]) == (PIECES, 0) for one in taken)
        folder = made.received / made.job.application
        assert (folder / ".claim").exists()
        [sender] = senders(made.job.process.pid)
        spool = spool_of(sender)
        os.kill(made.job.process.pid, signal.SIGKILL)
        await_removal(folder)
        await_removal(Path(f"/proc/{sender}"))
        await_removal(spool)


@pytest.mark.parametrize("version", ["3.5", "4.0"])
def test_plugin_supports_older_spark_versions(tmp_path: Path, settings: dict[str, object], version: str) -> None:
    with world(tmp_path, settings | BY_LIGHT, str(ROOT / f".venv-spark-{version}" / "bin" / "python")) as made:
        made.job.until(JOINED, 2)
        sent, taken = made.broadcast()
        assert (sent["way"], sent["hosts"], sent["reason"]) == ("optical", 1, "")
        assert [(one["pieces"], one["late"], one["reason"]) for one in taken] == [(PIECES, 0, "")] * 2
        assert made.job.end() == 0


def senders(process: int) -> list[int]:
    """Return the ids of the `blast sender` processes below this process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.parent.joinpath("cmdline").read_bytes().split(b"\0")
            if b"sender" in words and process in ancestors(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def spool_of(sender: int) -> Path:
    """Return the folder in which a sender keeps its files."""
    [spool] = Path("/dev/shm").glob(f"blast-sender-{sender}-*")
    return spool


def ancestors(process: int) -> list[int]:
    """Return the ancestors of a process, up to the first one."""
    found = []
    while process > 1:
        stat = Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
        found.append(process)
    return found
