"""A PySpark program on a cluster of its own, for test_spark_broadcast.py: a line of JSON for each scene.

It is run in .venv-spark, with what it needs to know as JSON in its only argument: `folder` and `address` of the agent.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import SparkConf, SparkContext

from blast_client import RoundSettings
from blast_client.spark import SparkSettings, blast_broadcast, reasons_so_far
from tests.support.waiting import eventually

EXECUTORS = 2
TASKS = 2
VALUES: dict[str, Any] = {
    "array": np.arange(200_000.0).reshape(500, 400),
    "dict": {"layer": np.full((300, 100), 2.0, "f4"), "bias": np.arange(5)},
    "bytes": bytes(range(256)) * 1000,
    "object": {"names": [f"name {number}" for number in range(2000)], 7: {1.5, None}},
}
_TIMEOUT = 60.0


def digest(value: Any) -> str:
    """Return the digest of the value."""
    if isinstance(value, np.ndarray):
        data = f"{value.dtype} {value.shape}".encode() + value.tobytes()
    elif isinstance(value, dict) and all(isinstance(one, np.ndarray) for one in value.values()):
        data = " ".join(f"{key} {digest(one)}" for key, one in value.items()).encode()
    else:
        data = value if isinstance(value, bytes | memoryview) else repr(value).encode()
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def seen(broadcast: Any) -> Callable[[Iterable[int]], list[tuple[str, str, int]]]:
    """Return the report of a task: the digest, the file that an array is mapped from, and its executor."""

    def look(_: Iterable[int]) -> list[tuple[str, str, int]]:
        value = broadcast.value
        mapped = str(getattr(getattr(value, "base", None), "filename", ""))
        return [(digest(value), mapped, executor_pid())]

    return look


def executor_pid() -> int:
    """Return the process id of the JVM above pyspark's daemon above this worker."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def report(scene: str, **fields: Any) -> None:
    """Print one line for the test."""
    print(json.dumps({"scene": scene} | fields), flush=True)


class Scenes:
    """The scenes of the test, each of one or more jobs on the same cluster."""

    def __init__(self, sc: SparkContext, given: dict[str, str]) -> None:
        self.sc, self.given = sc, given
        self.folder = Path(given["folder"]) / sc.applicationId

    def settings(self, **more: Any) -> SparkSettings:
        agents = {"127.0.0.1": f"h21={self.given['address']}"}
        return SparkSettings(agents=agents, threshold=0, round=RoundSettings(controller=None), **more)

    def files(self) -> list[int]:
        return sorted(path.stat().st_size for path in self.folder.glob("[0-9]*"))

    def executors(self) -> int:
        return int(self.sc._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def job(self, broadcast: Any) -> dict[str, Any]:
        answered = self.sc.parallelize(range(TASKS), TASKS).mapPartitions(seen(broadcast)).collect()
        return self.summary(answered) | {"reason": getattr(broadcast, "reason", None)}

    def summary(self, reports: list[tuple[str, str, int]]) -> dict[str, Any]:
        digests, mapped, executors = map(set, zip(*reports, strict=True))
        return {"digests": sorted(digests), "mapped": sorted(mapped), "executors": len(executors)}

    # ----------------------------------------------------------------------------------------------- scenes

    def every_value(self) -> None:
        for name, value in VALUES.items():
            broadcast = blast_broadcast(self.sc, value, settings=self.settings())
            plain = self.sc.broadcast(value)
            report(f"value {name}", spark=self.job(plain)["digests"], **self.job(broadcast))
            broadcast.destroy(blocking=True)
            plain.destroy()
        report("destroyed", files=self.files())

    def folder_not_seen(self) -> None:
        elsewhere = blast_broadcast(self.sc, VALUES["array"], settings=self.settings(path="/nowhere"))
        report("folder not seen", **self.job(elsewhere), counts=reasons_so_far())
        elsewhere.destroy(blocking=True)

    def an_executor_dies(self) -> None:
        broadcast = blast_broadcast(self.sc, VALUES["array"], settings=self.settings())
        tasks = self.sc.parallelize(range(TASKS), TASKS).mapPartitions(seen(broadcast))
        before = tasks.collect()
        report("before", **self.summary(before))
        os.kill(before[0][2], signal.SIGKILL)
        # Its workers live a little longer: a new one finds nothing and has to ask.
        for path in self.folder.glob("[0-9]*"):
            path.unlink()
        report("while one is lost", **self.summary(tasks.collect()))
        old = {executor for _, _, executor in before}
        eventually(lambda: self.executors() == EXECUTORS, "another executor", _TIMEOUT)
        after = eventually(lambda: self.if_new(tasks.collect(), old), "a task on the new executor", _TIMEOUT)
        report("one was added", files=self.files(), counts=reasons_so_far(), **self.summary(after))

    @staticmethod
    def if_new(reports: list[tuple[str, str, int]], old: set[int]) -> list[tuple[str, str, int]]:
        return reports if {executor for _, _, executor in reports} - old else []


def main(given: dict[str, str]) -> None:
    conf = SparkConf().setMaster(f"local-cluster[{EXECUTORS},1,512]").setAppName("blast-test")
    for key, value in {
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.local.dir": given["local"],
        "spark.executorEnv.BLAST_FOLDER": given["folder"],
        "spark.task.maxFailures": "4",
    }.items():
        conf.set(key, value)
    sc = SparkContext(conf=conf)
    sc.setLogLevel("OFF")
    scenes = Scenes(sc, given)
    eventually(lambda: scenes.executors() == EXECUTORS, "all executors", _TIMEOUT)
    scenes.every_value()
    scenes.folder_not_seen()
    scenes.an_executor_dies()
    # The end of the process frees the rest.
    blast_broadcast(sc, VALUES["array"], settings=scenes.settings()).destroy()
    report("over", files=scenes.files(), folder=str(scenes.folder))
    sc.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
