"""Clients of `cycles.py`, in a separate process that prints one JSON line of figures at the end (times in ms).

    cycles  jobs with one outstanding request each: submit, wait for the grant, finish at once
    one     one client, one request at a time, with a pause for the release
    held    requests that stay pending or active until standard input ends
    pings   one client that pings

A job has `--racks-per-job` separate racks (0: all jobs share all racks); each request goes to 3 to 5 random racks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.control_plane.child import print_json, serve_counts
from benchmarks.control_plane.rig import host
from blast_api.ttypes import MulticastRequest
from blast_client import Client
from blast_client.api.aio import AsyncClient
from blast_sim.base.percentiles import percentile

SMALLEST_GROUP, LARGEST_GROUP = 3, 5
BYTES = 10**8
TIMEOUT = 120.0
WARM_UP_REQUESTS = 20


@dataclass
class Held:
    """Counts of the held requests; `keys` of the granted ones."""

    submitted: int = 0
    granted: int = 0
    keys: list[str] = field(default_factory=list)


class Groups:
    """Random groups of one job. Keys are unique among all processes."""

    def __init__(self, racks: Sequence[int], seed: int) -> None:
        self._racks = racks
        self._draw = random.Random(seed)
        self._prefix = f"{os.getpid()}-{seed}"
        self._count = 0

    def next(self) -> MulticastRequest:
        """Return a request of 3 to 5 racks, the sender's included."""
        self._count += 1
        largest = min(LARGEST_GROUP, len(self._racks))
        members = self._draw.sample(self._racks, self._draw.randint(SMALLEST_GROUP, largest))
        sender, *receivers = [host(rack) for rack in members]
        return MulticastRequest(f"{self._prefix}-{self._count}", sender, receivers, BYTES)


def groups_of(options: argparse.Namespace, job: int) -> Groups:
    """Return the groups of a job; racks are assigned cyclically, because they may have several optical ports."""
    size = options.racks_per_job or options.racks
    return Groups([(job * size + place) % options.racks + 1 for place in range(size)], job)


def figures(seconds: Sequence[float]) -> dict[str, Any]:
    """Return the number and the distribution in ms."""
    if len(seconds) < 2:
        return {"n": len(seconds)}
    ordered = sorted(seconds)
    named = {"p50": statistics.median(ordered), "p99": percentile(ordered, 99), "max": ordered[-1]}
    return {"n": len(ordered), **{name: round(value * 1000, 3) for name, value in named.items()}}


async def _cycles(options: argparse.Namespace) -> dict[str, Any]:
    """Count the cycles that end after a warm-up of a tenth of the time."""
    begin = time.monotonic() + options.seconds * 0.1
    end = begin + options.seconds
    grants: list[float] = []
    total = 0

    async def job(number: int) -> None:
        nonlocal total
        groups = groups_of(options, number)
        async with AsyncClient(options.controller) as client:
            while (started := time.monotonic()) < end:
                request = groups.next()
                await client.request(request, timeout=TIMEOUT)
                granted = time.monotonic()
                await client.finish(request.key)
                total += 1
                if begin <= time.monotonic() < end:
                    grants.append(granted - started)

    await asyncio.gather(*(job(number) for number in range(options.jobs)))
    rate = round(len(grants) / options.seconds, 1)
    return {"cycles_per_second": rate, "grant_ms": figures(grants), "cycles": total}


def _one(options: argparse.Namespace) -> dict[str, Any]:
    groups = groups_of(options, 0)
    grants = []
    with Client(options.controller) as client:
        for number in range(options.requests + WARM_UP_REQUESTS):
            request = groups.next()
            started = time.perf_counter()
            client.request(request, timeout=TIMEOUT)
            if number >= WARM_UP_REQUESTS:
                grants.append(time.perf_counter() - started)
            client.finish(request.key)
            time.sleep(options.pause)
    return {"grant_ms": figures(grants)}


async def _held(options: argparse.Namespace) -> dict[str, Any]:
    """Hold requests on at most 10 connections."""
    held = Held()
    clients = [AsyncClient(options.controller) for _ in range(min(10, options.jobs))]

    async def hold(number: int) -> None:
        request, client = groups_of(options, number).next(), clients[number % len(clients)]
        await client.submit(request)
        held.submitted += 1
        await client.request(request, timeout=3600.0)
        held.granted += 1
        held.keys.append(request.key)

    waits = [asyncio.create_task(hold(number)) for number in range(options.jobs)]
    await serve_counts(held)
    for wait in waits:
        wait.cancel()
    return {}


def _pings(options: argparse.Namespace) -> dict[str, Any]:
    times = []
    with Client(options.controller) as client:
        client.ping()
        for _ in range(round(options.seconds / options.pause)):
            started = time.perf_counter()
            client.ping()
            times.append(time.perf_counter() - started)
            time.sleep(options.pause)
    return {"ping_ms": figures(times)}


MODES: dict[str, Callable[[argparse.Namespace], dict[str, Any] | Coroutine[Any, Any, dict[str, Any]]]] = {
    "cycles": _cycles,
    "one": _one,
    "held": _held,
    "pings": _pings,
}


def main() -> None:
    """Run the load and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--racks", type=int, default=0, help="number of racks of the fabric (default: 0)")
    parser.add_argument("--racks-per-job", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="number of concurrent jobs or requests (default: 1)")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument(
        "--pause", type=float, default=0.01, help="time between two requests or pings in s (default: 0.01)"
    )
    options = parser.parse_args()
    outcome = MODES[options.mode](options)
    print_json(asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome)


if __name__ == "__main__":
    main()
