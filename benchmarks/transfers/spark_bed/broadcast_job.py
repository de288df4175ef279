"""A Spark job that broadcasts on command; every executor reads each broadcast and computes its CRC-32.

Its argument is a file or named pipe with a JSON line for each order. `job` is "one" broadcast, "threads" (several
broadcasts, made at the same time by as many threads), or "star" (a star join in SQL: Spark broadcasts its dimensions at
the same time). `bytes` is the size of each broadcast; for one by `blast_broadcast`, `explicit` has the settings. It
prints the id of the application, then a JSON line for each order.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast as broadcast_hint
from pyspark.sql.functions import rand, xxhash64
from pyspark.sql.functions import sum as total

from blast_client import RoundSettings
from blast_client.spark import SparkSettings, blast_broadcast
from blast_transport.credentials.material import SharedSecret, read_secret

THREADS, DIMENSIONS = 4, 3
_NUMBERS, _ROW_BYTES = 5, 50
"""Of a row of a dimension: random numbers, and bytes in a broadcast."""


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
            order = json.loads(line)
            done = _joined(context, number, order) if order["job"] == "star" else _done(context, tasks, number, order)
            print(json.dumps(done), flush=True)
    context.stop()


def _done(context: Any, tasks: Any, number: int, order: dict[str, Any]) -> dict[str, Any]:
    generator, explicit = np.random.default_rng(number), order["explicit"]
    count = THREADS if order["job"] == "threads" else 1
    values = [generator.integers(0, 256, order["bytes"], np.uint8) for _ in range(count)]
    expected = [zlib.crc32(value) for value in values]
    with ThreadPoolExecutor(count) as threads:
        before, began = _sent_bytes(), time.time()
        make = context.broadcast if explicit is None else lambda value: _explicit(context, value, explicit)
        # `blast_broadcast` handles signals: it stays in the main thread.
        broadcasts = list(map(make, values) if count == 1 else threads.map(make, values))

    def read(_: Iterator[int]) -> Iterator[tuple[list[int], float]]:
        found = [zlib.crc32(broadcast.value) for broadcast in broadcasts]
        yield found, time.time()

    seen = tasks.barrier().mapPartitions(read).collect()
    result = {
        "seconds": max(end for _, end in seen) - began,
        "equal": [found for found, _ in seen] == [expected] * tasks.getNumPartitions(),
        "uplink_bytes": _sent_bytes() - before,
        "way": _transport_of(broadcasts[0]) if explicit else "",
    }
    for broadcast in broadcasts:
        broadcast.destroy()
    return result


def _joined(context: Any, number: int, order: dict[str, Any]) -> dict[str, Any]:
    session, count = SparkSession(context), int(context.getConf().get("spark.cores.max"))
    session.conf.set("spark.sql.shuffle.partitions", count)
    session.conf.set("spark.sql.broadcastTimeout", 3600)
    rows = order["bytes"] // _ROW_BYTES
    dimensions = [_dimension(session, rows, count, number, place) for place in range(DIMENSIONS)]
    # Compute the expected sums without a join, and thus without a broadcast; this also fills the cache.
    expected = [_checksums(dimension, [place])[0] for place, dimension in enumerate(dimensions)]
    before, began = _sent_bytes(), time.time()
    joined = reduce(
        lambda left, right: left.join(broadcast_hint(right), "id"), dimensions, session.range(0, rows, 1, count)
    )
    found = _checksums(joined, range(DIMENSIONS))
    seconds, sent = time.time() - began, _sent_bytes() - before
    for dimension in dimensions:
        dimension.unpersist()
    return {"seconds": seconds, "equal": found == expected, "uplink_bytes": sent, "way": ""}


def _dimension(session: SparkSession, rows: int, partitions: int, query: int, place: int) -> DataFrame:
    """Return a cached table of rows with a key and random numbers, others for each query and place."""
    seed = (query * DIMENSIONS + place) * _NUMBERS
    numbers = [rand(seed + number).alias(f"n{place}_{number}") for number in range(_NUMBERS)]
    return session.range(0, rows, 1, partitions).select("id", *numbers).cache()


def _checksums(table: DataFrame, places: Iterable[int]) -> list[int]:
    """Return a checksum of the columns of each of these dimensions, the same for any order of rows."""
    columns = [["id", *(f"n{place}_{number}" for number in range(_NUMBERS))] for place in places]
    sums = [total(xxhash64(*names).cast("decimal(38)")).alias(names[1]) for names in columns]
    return [int(value) for value in table.select(*sums).collect()[0]]


def _explicit(context: Any, value: Any, explicit: dict[str, Any]) -> Any:
    secret = SharedSecret(read_secret(Path(explicit["secret"])))
    settings = RoundSettings(controller=explicit["controller"], sender=explicit["host"], credentials=secret)
    return blast_broadcast(context, value, settings=SparkSettings(agents=explicit["agents"], round=settings))


def _transport_of(broadcast: Any) -> str:
    if broadcast.reason is not None:
        return f"spark ({broadcast.reason.value})"
    return "+".join(broadcast.outcome.transports)


def _sent_bytes() -> int:
    """Return the bytes that have left this network namespace over all its links."""
    links = (line.split(":") for line in Path("/proc/self/net/dev").read_text().splitlines()[2:])
    return sum(int(counts.split()[8]) for name, counts in links if name.strip() != "lo")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
