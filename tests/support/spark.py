"""Spark clusters of one machine, for tests of what goes into them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import look_until

PROJECT = Path(__file__).resolve().parents[2]
PYTHON = PROJECT / ".venv-spark" / "bin" / "python"
JAR = PROJECT / "clients" / "java" / "spark" / "target" / "blast-spark-0.1.0.jar"
JOB = Path(__file__).with_name("spark_job.py")

SLOW = 180.0
"""Seconds in which a cluster of this machine has certainly done what it was asked to."""


class Job:
    """A running application that does what it is told."""

    def __init__(self, process: subprocess.Popen[str], events: Path) -> None:
        self.process, self._events = process, events
        self.application: str = self._answer()["application"]

    def __call__(self, what: str, *arguments: float) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps([what, *arguments])}\n")
        self.process.stdin.flush()
        return self._answer()

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What Spark's event log has of this kind by now."""
        lines = [line for path in self._events.rglob("events_*") for line in path.read_text().splitlines()]
        # The last one may be half written.
        found = (json.loads(line) for line in lines if line.endswith("}") and f'"Event":"{kind}"' in line)
        return list(found)

    def until(self, kind: str, number: int) -> list[dict[str, Any]]:
        """All events of this kind, once there are so many."""
        return look_until(lambda: self.events(kind), lambda all_: len(all_) >= number, f"{number} {kind}", SLOW)

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
def job(folder: Path, master: str, settings: Mapping[str, object], python: Path = PYTHON) -> Iterator[Job]:
    """An application on this master, with these settings; its files in `folder`, its log in `folder`/log."""
    events = folder / "events"
    events.mkdir(parents=True)
    fixed = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events,
        "spark.local.dir": folder / "local",
        "spark.executor.memory": "512m",
    }
    words = ["--master", master]
    for name, value in {**fixed, **settings}.items():
        words += ["--conf", f"{name}={value}"]
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    with (folder / "log").open("w") as log, subprocess.Popen(
        [python, JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield Job(process, events)
        finally:
            # The job's Java goes when its end of the pipe closes, and its executors with that.
            process.kill()


@contextmanager
def agent_process(folder: Path, secret: Path, blast: Path, port: int = 0) -> Iterator[str]:
    """`blast agent run` with a folder `spark` for what executors claim; where it listens."""
    received = folder / "received"
    received.mkdir(parents=True, exist_ok=True)
    config = folder / "agent.toml"
    config.write_text(
        f'[agent]\nlisten = "127.0.0.1:{port}"\nlight_address = "127.0.0.1"\ndurable = false\n'
        f'[[folder]]\nname = "spark"\npath = "{received}"\nclaimed = true\n[access]\nsecret_file = "{secret}"\n'
    )
    command = [blast, "agent", "run", "--config", config, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            yield f"127.0.0.1:{ready['port']}"
        finally:
            process.kill()


def spools() -> set[Path]:
    """Of all `blast sender` on this machine."""
    return set(Path("/dev/shm").glob("blast-sender-*"))


def gone(path: Path) -> None:
    """Wait until nothing of this name is there any more."""
    look_until(path.exists, lambda there: not there, f"{path} to go", SLOW)


def wait_until_old(path: Path, seconds: float) -> None:
    """Until the file was made so many seconds ago."""
    look_until(lambda: time.time() - path.stat().st_mtime, lambda age: age > seconds, f"{path} to be old", SLOW)
