"""Claim: clients that watch the fabric do not delay grants.

One client requests the fabric 50 times a second, another has the page open, and a third reads the metrics every second,
while a client submits one request after another to a controller of 100 racks with 50 splitters 1:4. Rounds with and
without the readers alternate, and so does their order. The output has the ratios of the median and of the 99th
percentile of the time to a grant: medians over the rounds, with a 90 % interval (bars: its upper end at most 1.05 and
1.2).

    .venv/bin/python benchmarks/control_plane/grants_with_readers.py --rounds 10 --seconds 6
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.http_floods import TOKENS, HttpRig, asked, grants
from benchmarks.control_plane.rig import Size
from benchmarks.median_interval import median_interval
from blast_client import Client
from blast_sim.base.percentiles import percentile

FABRIC_SECONDS, METRICS_SECONDS = 0.02, 1.0
MAX_MEDIAN, MAX_P99 = 1.05, 1.2


def read_fabric(thrift: str) -> None:
    """Request the fabric at a constant rate, or as fast as it is answered."""
    with Client(thrift, token=TOKENS["operator"]) as client:
        due = time.monotonic()
        while True:
            client.fabric()
            due = max(due + FABRIC_SECONDS, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))  # the rest of its interval


def read_page(address: str) -> None:
    """Read the updates of an open page."""
    connection = http.client.HTTPConnection(address)
    connection.request("GET", "/stream", headers={"Authorization": f"Bearer {TOKENS['operator']}"})
    updates = connection.getresponse()
    while updates.read1():
        continue


def read_metrics(address: str) -> None:
    """Read the metrics at a constant rate."""
    while True:
        asked(address, "/metrics", "operator")
        time.sleep(METRICS_SECONDS)  # an interval of a monitoring system


def _read(thrift: str, http_address: str) -> None:
    readers: list[tuple[Callable[[str], None], str]] = [
        (read_fabric, thrift),
        (read_page, http_address),
        (read_metrics, http_address),
    ]
    threads = [threading.Thread(target=reader, args=(address,), daemon=True) for reader, address in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def readers(rig: HttpRig) -> Iterator[None]:
    """Read until the end of the block, in a separate process because this one measures."""
    process = multiprocessing.get_context("spawn").Process(target=_read, args=(rig.thrift, rig.http), daemon=True)
    process.start()
    try:
        time.sleep(1.5)  # they have begun
        yield
    finally:
        process.terminate()
        process.join()


def measure(rounds: int, seconds: float) -> dict[str, Any]:
    """Return the times to a grant of each round in s, with and without readers, and the ratios of their percentiles."""
    alone: list[list[float]] = []
    watched: list[list[float]] = []
    with HttpRig(Size(100, 50)) as rig:
        grants(rig, 2.0, 0)
        for number in range(rounds):
            for with_readers in (number % 2 == 0, number % 2 == 1):
                if with_readers:
                    with readers(rig):
                        watched.append(grants(rig, seconds, 2 * number + 1))
                else:
                    alone.append(grants(rig, seconds, 2 * number + 2))
    rows = {"alone": _milliseconds(alone), "watched": _milliseconds(watched)}
    return {**rows, "median": _ratio(alone, watched, 50), "p99": _ratio(alone, watched, 99)}


def _milliseconds(rounds: list[list[float]]) -> dict[str, float]:
    p50, p99 = (statistics.median(percentile(sorted(one), share) for one in rounds) for share in (50, 99))
    return {"p50_ms": round(1000 * p50, 3), "p99_ms": round(1000 * p99, 3)}


def _ratio(alone: list[list[float]], watched: list[list[float]], share: float) -> list[float]:
    pairs = zip(alone, watched, strict=True)
    ratios = [percentile(sorted(after), share) / percentile(sorted(before), share) for before, after in pairs]
    return [round(value, 3) for value in median_interval(ratios)]


def main() -> None:
    """Measure and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="number of rounds with readers (default: 10)")
    parser.add_argument("--seconds", type=float, default=6.0, help="duration of each round in s (default: 6)")
    options = parser.parse_args()
    found = measure(options.rounds, options.seconds)
    if options.json:
        print(json.dumps(found))
        return
    for name in ("alone", "watched"):
        print(f"{name:8} p50 {found[name]['p50_ms']:7.2f} ms  p99 {found[name]['p99_ms']:7.2f} ms")
    for name, bar in (("median", MAX_MEDIAN), ("p99", MAX_P99)):
        low, middle, high = found[name]
        print(f"{name:8} ratio {middle:.2f} ({low:.2f} to {high:.2f}){'  MISSED' if high > bar else ''}")


if __name__ == "__main__":
    main()
