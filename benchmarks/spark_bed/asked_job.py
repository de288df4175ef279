"""The job of benchmarks/spark_faults.py: broadcasts when it is asked to, each read and added up by every executor.

Run by Spark in the network of the driver's host. Its only argument is a named pipe. A line there is JSON: how many
`times` to broadcast how many `bytes`; the answer, on standard output, what that took and whether all was read as it
was. Before the first it says which application it is, and it ends with the pipe.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import SparkContext

_POLL_SECONDS = 0.02


def main(pipe: Path) -> None:
    """Do it."""
    context = SparkContext()
    count = int(context.getConf().get("spark.cores.max"))
    tasks = context.parallelize(range(count), count)
    tasks.mapPartitions(_nothing).collect()
    _say({"application": context.applicationId})
    with pipe.open() as orders:
        for number, line in enumerate(orders):
            _await_executors(context, count)
            _say(_done(context, tasks, number, json.loads(line)))
    context.stop()


def _done(context: SparkContext, tasks: Any, number: int, order: dict[str, Any]) -> dict[str, Any]:
    dice = np.random.default_rng(number)
    seconds, equal = 0.0, True
    for _ in range(order["times"]):
        value = dice.integers(0, 256, order["bytes"], np.uint8)
        expected = zlib.crc32(value)
        began = time.monotonic()
        broadcast = context.broadcast(value)

        def read(_: Iterator[int], broadcast: Any = broadcast) -> Iterator[int]:
            yield zlib.crc32(broadcast.value)

        found = tasks.mapPartitions(read).collect()
        seconds += time.monotonic() - began
        equal = equal and found == [expected] * tasks.getNumPartitions()
        broadcast.destroy()
    return {"seconds": seconds, "equal": equal}


def _await_executors(context: Any, count: int) -> None:
    """The driver counts as one."""
    while context._jsc.sc().getExecutorMemoryStatus().size() <= count:
        time.sleep(_POLL_SECONDS)


def _nothing(some: Iterator[int]) -> Iterator[int]:
    return some


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
