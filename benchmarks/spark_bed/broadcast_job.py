"""The job that benchmarks/spark_broadcast.py measures: broadcasts, each read and added up by every executor.

Run by Spark in the network of the driver's host. Its only argument is JSON: how many `executors`, how many
`broadcasts` of how many `bytes`, and, for the explicit way, who and where the `agents` are. It prints a JSON line each.
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
from pyspark import BarrierTaskContext, SparkContext

from blast_client import RoundSettings
from blast_client.spark import SparkSettings, blast_broadcast
from blast_transport.credentials.material import SharedSecret, read_secret


def main(asked: dict[str, Any]) -> None:
    """Do it."""
    context = SparkContext()
    executors = context.parallelize(range(asked["executors"]), asked["executors"]).barrier()
    executors.mapPartitions(_nothing).collect()
    for number in range(asked["broadcasts"]):
        value = np.random.default_rng(number).integers(0, 256, asked["bytes"], np.uint8)
        expected = zlib.crc32(value)
        before, began = _left_the_host(), time.time()
        broadcast = _explicit(context, value, asked) if asked["explicit"] else context.broadcast(value)

        def read(_: Iterator[int], broadcast: Any = broadcast) -> Iterator[tuple[int, float, str]]:
            found = zlib.crc32(broadcast.value)
            yield found, time.time(), BarrierTaskContext.get().getTaskInfos()[0].address

        seen = executors.mapPartitions(read).collect()
        print(
            json.dumps(
                {
                    "seconds": max(end for _, end, _ in seen) - began,
                    "equal": [found for found, _, _ in seen] == [expected] * asked["executors"],
                    "uplink_bytes": _left_the_host() - before,
                    "way": _way(broadcast) if asked["explicit"] else "",
                }
            ),
            flush=True,
        )
        broadcast.destroy()
    context.stop()


def _nothing(some: Iterator[int]) -> Iterator[int]:
    return some


def _explicit(context: SparkContext, value: Any, asked: dict[str, Any]) -> Any:
    way = RoundSettings(
        controller=asked["controller"],
        sender=asked["host"],
        credentials=SharedSecret(read_secret(Path(asked["secret"]))),
    )
    return blast_broadcast(context, value, settings=SparkSettings(agents=asked["agents"], round=way))


def _way(broadcast: Any) -> str:
    """By what it went, as it says."""
    if broadcast.reason is not None:
        return f"spark ({broadcast.reason.value})"
    return "+".join(broadcast.outcome.carriers)


def _left_the_host() -> int:
    """Bytes that have left this network namespace by now, over all its links."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    links = (line.split(":") for line in lines)
    return sum(int(counts.split()[8]) for name, counts in links if name.strip() != "lo")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
