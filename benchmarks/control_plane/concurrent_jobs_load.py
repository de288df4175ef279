"""The jobs of `concurrent_jobs.py`, in a separate process that prints one JSON line of figures at the end.

Every job has a fixed group of racks. In each iteration it submits a request, holds the grant, finishes it and computes.
In the open loop the due times do not depend on waits, and a late job submits its request at once; in the closed loop a
job computes from the end of its grant on. A wait counts from the due time, so that late requests do not hide long
waits. All iterations due within the time are served.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.control_plane.child import print_json
from benchmarks.control_plane.load import LARGEST_GROUP, SMALLEST_GROUP, figures
from benchmarks.control_plane.rig import host
from blast_api.ttypes import MulticastRequest
from blast_client import TimedOut
from blast_client.api.aio import AsyncClient

LIGHT_BYTES_PER_SECOND = 1.25e9
SPREAD = 0.1
"""The share by which computations differ from their mean."""
OPEN, CLOSED = "open", "closed"
STARVED_SECONDS = 30.0


@dataclass(frozen=True)
class Iteration:
    """Due time, grant and end, in seconds since the load began."""

    due: float
    granted: float
    ended: float

    @property
    def wait(self) -> float:
        """Seconds until the grant."""
        return self.granted - self.due

    def lit_within(self, seconds: float) -> float:
        """Return the part of its grant within the first `seconds`."""
        return max(0.0, min(seconds, self.ended) - min(seconds, self.granted))


@dataclass
class Job:
    """A job on its hosts, sender first, with its granted iterations and the number of starved ones."""

    hosts: Sequence[str]
    dice: random.Random
    done: list[Iteration] = field(default_factory=list)
    starved: int = 0


def draw_jobs(options: argparse.Namespace) -> list[Job]:
    """Return all jobs, on racks of their own if there are enough."""
    dice = random.Random(options.seed)
    sizes = [dice.randint(SMALLEST_GROUP, LARGEST_GROUP) for _ in range(options.jobs)]
    racks = range(1, options.racks + 1)
    if sum(sizes) <= options.racks:
        deal = iter(dice.sample(racks, sum(sizes)))
        groups = [[next(deal) for _ in range(size)] for size in sizes]
    else:
        groups = [dice.sample(racks, size) for size in sizes]
    return [
        Job([host(rack) for rack in group], random.Random(f"{options.seed}/{number}"))
        for number, group in enumerate(groups)
    ]


class Load:
    """All jobs on one controller."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._jobs = draw_jobs(options)
        self._began = 0.0
        self._waiting = self._max_waiting = 0

    async def run(self) -> dict[str, Any]:
        """Run all jobs, connected before the start; return the figures."""
        clients = [AsyncClient(self._options.controller) for _ in self._jobs]
        for client in clients:
            await client.ping()
        self._began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, (job, client) in enumerate(zip(self._jobs, clients, strict=True)):
                tasks.create_task(self._work(job, client, f"{os.getpid()}-{number}"))
        drained = self._now()
        for client in clients:
            await client.close()
        return self._figures(drained)

    async def _work(self, job: Job, client: AsyncClient, name: str) -> None:
        options = self._options
        period = options.jobs / options.rate
        due = job.dice.uniform(0, period)
        while due < options.seconds:
            await asyncio.sleep(due - self._now())
            await self._iterate(job, client, f"{name}-{len(job.done) + job.starved}", due)
            factor = job.dice.uniform(1 - SPREAD, 1 + SPREAD)
            due = due + period * factor if options.loop == OPEN else self._now() + (period - options.lit) * factor

    async def _iterate(self, job: Job, client: AsyncClient, key: str, due: float) -> None:
        sender, *receivers = job.hosts
        size = round(self._options.lit * LIGHT_BYTES_PER_SECOND)
        self._waiting += 1
        self._max_waiting = max(self._max_waiting, self._waiting)
        try:
            await client.request(MulticastRequest(key, sender, receivers, size), timeout=STARVED_SECONDS)
        except TimedOut:
            job.starved += 1
            await client.withdraw(key)
            return
        finally:
            self._waiting -= 1
        granted = self._now()
        await asyncio.sleep(self._options.lit)
        await client.finish(key)
        job.done.append(Iteration(due, granted, self._now()))

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _figures(self, drained: float) -> dict[str, Any]:
        seconds, splitters = self._options.seconds, self._options.splitters
        done = [one for job in self._jobs for one in job.done]
        starved = sum(job.starved for job in self._jobs)
        each = [len(job.done) for job in self._jobs]
        return {
            "asked_per_second": round((len(done) + starved) / seconds, 2),
            "granted_per_second": round(sum(one.granted < seconds for one in done) / seconds, 2),
            "wait_ms": figures([one.wait for one in done]),
            "wait_ms_second_half": figures([one.wait for one in done if one.due >= seconds / 2]),
            "waiting": {"mean": round(sum(one.wait for one in done) / drained, 1), "most": self._max_waiting},
            "light_used": round(sum(one.lit_within(seconds) for one in done) / (splitters * seconds), 4),
            "served_all_after_s": round(drained, 2),
            "iterations_of_a_job": {"least": min(each), "mean": round(statistics.fmean(each), 2), "most": max(each)},
            "jobs_starved": sum(job.starved > 0 for job in self._jobs),
        }


def main() -> None:
    """Run the load and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--racks", type=int, required=True, help="number of racks of the fabric")
    splitters = "number of splitters of the fabric; each tree takes one"
    parser.add_argument("--splitters", type=int, required=True, help=splitters)
    parser.add_argument("--jobs", type=int, required=True, help="number of jobs")
    parser.add_argument("--loop", choices=(OPEN, CLOSED), default=OPEN, help=f"kind of load (default: {OPEN})")
    rate = "requests per second of all jobs together (default: 40)"
    parser.add_argument("--rate", type=float, default=40.0, help=rate)
    parser.add_argument("--lit", type=float, default=1.25, help="duration of each transfer in s (default: 1.25)")
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of the load in s (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all draws (default: 0)")
    print_json(asyncio.run(Load(parser.parse_args()).run()))


if __name__ == "__main__":
    main()
