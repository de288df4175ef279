"""A Spark job that broadcasts on order; every executor reads each broadcast and computes its CRC-32.

Its argument is a named pipe with JSON lines: how many `times` to broadcast how many `bytes`. For each it prints the
seconds, and whether all executors read what was sent; before, it prints the id of the application.
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


def main(pipe: Path) -> None:
    """Broadcast until the pipe ends."""
    context = SparkContext()
    count = int(context.getConf().get("spark.cores.max"))
    tasks = context.parallelize(range(count), count)
    tasks.mapPartitions(lambda some: some).collect()
    print(json.dumps({"application": context.applicationId}), flush=True)
    with pipe.open() as orders:
        for number, line in enumerate(orders):
            # The driver counts as one.
            while context._jsc.sc().getExecutorMemoryStatus().size() <= count:
                time.sleep(0.02)
            print(json.dumps(_done(context, tasks, number, json.loads(line))), flush=True)
    context.stop()


def _done(context: Any, tasks: Any, number: int, order: dict[str, Any]) -> dict[str, Any]:
    dice = np.random.default_rng(number)
    seconds, equal = 0.0, True
    for _ in range(order["times"]):
        value = dice.integers(0, 256, order["bytes"], np.uint8)
        began = time.monotonic()
        broadcast = context.broadcast(value)

        def read(_: Iterator[int], broadcast: Any = broadcast) -> Iterator[int]:
            yield zlib.crc32(broadcast.value)

        found = tasks.mapPartitions(read).collect()
        seconds += time.monotonic() - began
        equal = equal and found == [zlib.crc32(value)] * tasks.getNumPartitions()
        broadcast.destroy()
    return {"seconds": seconds, "equal": equal}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
