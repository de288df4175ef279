"""The job of `benchmarks/spark_broadcast.py`: broadcasts that every executor reads, with their CRC-32.

Its argument is JSON: the number of `executors` and `broadcasts`, their `bytes`, and, for `explicit` broadcasts by
`blast_broadcast`, the `agents`. It prints a JSON line for each broadcast.
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
    """Broadcast."""
    context = SparkContext()
    executors = context.parallelize(range(asked["executors"]), asked["executors"]).barrier()
    executors.mapPartitions(lambda some: some).collect()
    for number in range(asked["broadcasts"]):
        value = np.random.default_rng(number).integers(0, 256, asked["bytes"], np.uint8)
        expected = zlib.crc32(value)
        before, began = _sent_bytes(), time.time()
        broadcast = _explicit(context, value, asked) if asked["explicit"] else context.broadcast(value)

        def read(_: Iterator[int], broadcast: Any = broadcast) -> Iterator[tuple[int, float, str]]:
            found = zlib.crc32(broadcast.value)
            yield found, time.time(), BarrierTaskContext.get().getTaskInfos()[0].address

        seen = executors.mapPartitions(read).collect()
        result = {
            "seconds": max(end for _, end, _ in seen) - began,
            "equal": [found for found, _, _ in seen] == [expected] * asked["executors"],
            "uplink_bytes": _sent_bytes() - before,
            "way": _transport_of(broadcast) if asked["explicit"] else "",
        }
        print(json.dumps(result), flush=True)
        broadcast.destroy()
    context.stop()


def _explicit(context: Any, value: Any, asked: dict[str, Any]) -> Any:
    secret = SharedSecret(read_secret(Path(asked["secret"])))
    settings = RoundSettings(controller=asked["controller"], sender=asked["host"], credentials=secret)
    return blast_broadcast(context, value, settings=SparkSettings(agents=asked["agents"], round=settings))


def _transport_of(broadcast: Any) -> str:
    if broadcast.reason is not None:
        return f"spark ({broadcast.reason.value})"
    return "+".join(broadcast.outcome.carriers)


def _sent_bytes() -> int:
    """Return the bytes that have left this network namespace over all its links."""
    links = (line.split(":") for line in Path("/proc/self/net/dev").read_text().splitlines()[2:])
    return sum(int(counts.split()[8]) for name, counts in links if name.strip() != "lo")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
