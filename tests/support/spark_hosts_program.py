"""A PySpark program on a cluster of several hosts, for test_spark_hosts.py: it says what it saw, and waits for a line.

It is run in .venv-spark, with JSON in its only argument: the `master`, and the `agents` by host.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from pyspark import SparkConf, SparkContext

from blast_client import RoundSettings
from blast_client.spark import SparkSettings, blast_broadcast, reasons_so_far
from blast_client.spark.cluster import executor_hosts
from tests.support.waiting import eventually, look_until

_MOST = 90.0


def main(given: dict[str, Any]) -> None:
    conf = SparkConf().setMaster(given["master"]).setAppName("blast-test").set("spark.executor.memory", "512m")
    conf.set("spark.ui.enabled", "false").set("spark.driver.host", "127.0.0.1")
    sc = SparkContext(conf=conf)
    sc.setLogLevel("OFF")
    value = np.arange(300_000.0)
    hosts = {"127.0.0.2", "127.0.0.3"}
    eventually(lambda: executor_hosts(sc) == hosts, "the first executors", _MOST)
    settings = SparkSettings(agents=given["agents"], threshold=0, round=RoundSettings(controller=None))
    say("started", application=sc.applicationId)
    broadcast = blast_broadcast(sc, value, settings=settings)

    def look(_: Iterable[int]) -> list[tuple[float, str]]:
        came = broadcast.value
        return [(float(came.sum()), str(getattr(came.base, "filename", "")))]

    tasks = sc.parallelize(range(4), 4).mapPartitions(look)

    def seen() -> dict[str, Any]:
        sums, files = map(set, zip(*tasks.collect(), strict=True))
        return {"right": sums == {float(value.sum())}, "files": sorted(files)}

    assert broadcast.outcome is not None
    say("all", hosts=sorted(executor_hosts(sc)), delivered=sorted(broadcast.outcome.delivered), **seen())
    for late in ("127.0.0.4", "127.0.0.5"):
        hosts.add(late)
        eventually(lambda: executor_hosts(sc) == hosts, f"an executor on {late}", _MOST)
        found = look_until(seen, lambda now: len(now["files"]) >= len(hosts), "a task on each", _MOST)
        say("late", fetched=reasons_so_far().get("fetched", 0), **found)
    sc.parallelize(range(4), 4).map(lambda _: float(broadcast.value.sum())).collect()
    say("by spark", reason=broadcast.reason)
    sc.stop()


def say(what: str, **more: Any) -> None:
    print(json.dumps({"what": what} | more), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
