"""A Spark job that broadcasts on order; every executor reads each broadcast and computes its CRC-32.

Its argument is a file or named pipe with a JSON line for each broadcast: the number of `bytes` and, for one by
`blast_broadcast`, `explicit` settings. It prints the id of the application, then a JSON line for each broadcast.
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


def main(orders: Path) -> None:
    """Broadcast until the orders end."""
    context = SparkContext()
    count = int(context.getConf().get("spark.cores.max"))
    tasks = context.parallelize(range(count), count)
    tasks.barrier().mapPartitions(lambda some: some).collect()
    print(json.dumps({"application": context.applicationId}), flush=True)
    with orders.open() as lines:
        for number, line in enumerate(lines):
            # The driver counts as one.
            while context._jsc.sc().getExecutorMemoryStatus().size() <= count:
                time.sleep(0.02)
            print(json.dumps(_done(context, tasks, number, json.loads(line))), flush=True)
    context.stop()


def _done(context: Any, tasks: Any, number: int, order: dict[str, Any]) -> dict[str, Any]:
    value, explicit = np.random.default_rng(number).integers(0, 256, order["bytes"], np.uint8), order["explicit"]
    expected = zlib.crc32(value)
    before, began = _sent_bytes(), time.time()
    broadcast = _explicit(context, value, explicit) if explicit else context.broadcast(value)

    def read(_: Iterator[int]) -> Iterator[tuple[int, float, str]]:
        found = zlib.crc32(broadcast.value)
        yield found, time.time(), BarrierTaskContext.get().getTaskInfos()[0].address

    seen = tasks.barrier().mapPartitions(read).collect()
    result = {
        "seconds": max(end for _, end, _ in seen) - began,
        "equal": [found for found, _, _ in seen] == [expected] * tasks.getNumPartitions(),
        "uplink_bytes": _sent_bytes() - before,
        "way": _transport_of(broadcast) if explicit else "",
    }
    broadcast.destroy()
    return result


def _explicit(context: Any, value: Any, explicit: dict[str, Any]) -> Any:
    secret = SharedSecret(read_secret(Path(explicit["secret"])))
    settings = RoundSettings(controller=explicit["controller"], sender=explicit["host"], credentials=secret)
    return blast_broadcast(context, value, settings=SparkSettings(agents=explicit["agents"], round=settings))


def _transport_of(broadcast: Any) -> str:
    if broadcast.reason is not None:
        return f"spark ({broadcast.reason.value})"
    return "+".join(broadcast.outcome.carriers)


def _sent_bytes() -> int:
    """Return the bytes that have left this network namespace over all its links."""
    links = (line.split(":") for line in Path("/proc/self/net/dev").read_text().splitlines()[2:])
    return sum(int(counts.split()[8]) for name, counts in links if name.strip() != "lo")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
