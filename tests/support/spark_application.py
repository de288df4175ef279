"""An application of Spark that does what a test tells it to, and what Spark's event log says of it."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.spark_cluster import PYTHON, ROOT, in_spark
from tests.support.waiting import look_until

JAR = ROOT / "clients" / "java" / "spark" / "target" / "blast-spark-0.1.0.jar"
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
        lines = [line for path in self._events.rglob("*") if path.is_file() for line in path.read_text().splitlines()]
        # The last one may be half written.
        return [json.loads(line) for line in lines if line.endswith("}") and f'"Event":"{kind}"' in line]

    def until(self, kind: str, number: int) -> list[dict[str, Any]]:
        """All events of this kind, once there are so many."""
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
    """An application on this master, with these settings; all its files lie in `folder`. `python` has Spark."""
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
    with in_spark([python, str(JOB)], folder, "127.0.0.1", python, PYSPARK_SUBMIT_ARGS=submitted) as process:
        yield Job(process, events)


def gone(path: Path) -> None:
    """Wait until nothing of this name is there any more."""
    look_until(path.exists, lambda there: not there, f"{path} to go", SLOW)
