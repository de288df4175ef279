"""Clients of the control-plane benchmark, in a process of their own; one JSON line of figures at the end (times in ms).

    cycles       jobs that request, are granted and finish at once, one request outstanding each
    one          one client, one request at a time, with a pause for the release
    held         requests that stay outstanding or lit until standard input ends
    pings        one client that pings
    watch        one client that asks for the fabric again and again, and decodes nothing of it
    connections  many connections, each of which pings in turn

A job has racks of its own, `--racks-per-job` (0: all jobs draw from all racks), and each of its requests goes to 3 to 5
of them, drawn anew.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import statistics
import struct
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from child import serve_counts, tell
from control_plane_rig import host
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import BlastOperator
from blast_api.ttypes import MulticastRequest
from blast_client import Client
from blast_client.aio import AsyncClient
from blast_controller.rpc.connections.frames import encode_frame

SMALLEST_GROUP, LARGEST_GROUP = 3, 5
BYTES = 10**8
PATIENCE = 120.0


@dataclass
class Held:
    """How far the requests that are held have come; `keys` of those that are lit."""

    submitted: int = 0
    granted: int = 0
    keys: list[str] = field(default_factory=list)


class Groups:
    """Draws the groups of one job. Keys are unique among all processes."""

    def __init__(self, racks: Sequence[int], seed: int) -> None:
        self._racks = racks
        self._draw = random.Random(seed)
        self._prefix = f"{os.getpid()}-{seed}"
        self._count = 0

    def next(self) -> MulticastRequest:
        """A request of 3 to 5 racks, the sender's included."""
        self._count += 1
        largest = min(LARGEST_GROUP, len(self._racks))
        members = self._draw.sample(self._racks, self._draw.randint(SMALLEST_GROUP, largest))
        sender, *receivers = [host(rack) for rack in members]
        return MulticastRequest(f"{self._prefix}-{self._count}", sender, receivers, BYTES)


def groups_of(options: argparse.Namespace, job: int) -> Groups:
    """The groups of a job. Behind the last rack comes the first, where racks have more optical ports than one."""
    size = options.racks_per_job or options.racks
    return Groups([(job * size + place) % options.racks + 1 for place in range(size)], job)


def figures(seconds: Sequence[float]) -> dict[str, Any]:
    """How many, and their distribution in ms."""
    if len(seconds) < 2:
        return {"n": len(seconds)}
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    named = {"p50": statistics.median(ordered), "p99": p99, "max": ordered[-1]}
    return {"n": len(ordered), **{name: round(value * 1000, 3) for name, value in named.items()}}


async def _cycles(options: argparse.Namespace) -> dict[str, Any]:
    """Counted are the cycles that end after the first tenth of the time, in which everything warms up."""
    begin = time.monotonic() + options.seconds * 0.1
    end = begin + options.seconds
    grants: list[float] = []
    total = counted = 0

    async def job(number: int) -> None:
        nonlocal total, counted
        groups = groups_of(options, number)
        async with AsyncClient(options.controller) as client:
            while (started := time.monotonic()) < end:
                request = groups.next()
                await client.request(request, timeout=PATIENCE)
                granted = time.monotonic()
                await client.finish(request.key)
                total += 1
                if begin <= time.monotonic() < end:
                    counted += 1
                    grants.append(granted - started)

    await asyncio.gather(*(job(number) for number in range(options.jobs)))
    rate = round(counted / options.seconds, 1)
    return {"cycles_per_second": rate, "grant_ms": figures(grants), "cycles": total}


def _one(options: argparse.Namespace) -> dict[str, Any]:
    groups = groups_of(options, 0)
    warm_up = 20
    grants, finishes = [], []
    with Client(options.controller) as client:
        for number in range(options.requests + warm_up):
            request = groups.next()
            started = time.perf_counter()
            client.request(request, timeout=PATIENCE)
            granted = time.perf_counter()
            client.finish(request.key)
            finished = time.perf_counter()
            if number >= warm_up:
                grants.append(granted - started)
                finishes.append(finished - granted)
            time.sleep(options.pause)
    return {"grant_ms": figures(grants), "finish_ms": figures(finishes), "grants": grants}


async def _held(options: argparse.Namespace) -> dict[str, Any]:
    """Outstanding on 10 connections at most, a request's answer only counted."""
    held = Held()
    clients = [AsyncClient(options.controller) for _ in range(min(10, options.jobs))]

    async def hold(number: int) -> None:
        request = groups_of(options, number).next()
        await clients[number % len(clients)].submit(request)
        held.submitted += 1
        await clients[number % len(clients)].request(request, timeout=3600.0)
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


def _watch(options: argparse.Namespace) -> dict[str, Any]:
    """To decode the answers would take this process more time than the controller needs to give them."""
    call = encode_frame(_fabric_call())
    times = []
    address, port = options.controller.rsplit(":", 1)
    with socket.create_connection((address, int(port))) as connection, connection.makefile("rb") as answers:
        end = time.monotonic() + options.seconds
        while (started := time.monotonic()) < end:
            connection.sendall(call)
            (size,) = struct.unpack("!i", answers.read(4))
            answers.read(size)
            times.append(time.monotonic() - started)
            time.sleep(max(0.0, started + options.pause - time.monotonic()))
    return {"fabric_ms": figures(times)}


def _fabric_call() -> bytes:
    buffer = TMemoryBuffer()
    BlastOperator.Client(TBinaryProtocol(buffer)).send_fabric()
    return buffer.getvalue()


async def _connections(options: argparse.Namespace) -> dict[str, Any]:
    clients = [AsyncClient(options.controller) for _ in range(options.jobs)]
    first: list[float] = []
    later: list[float] = []

    async def timed(client: AsyncClient, into: list[float]) -> None:
        started = time.perf_counter()
        await client.ping()
        into.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(timed(client, first) for client in clients))
    opened = time.perf_counter() - started
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for client in clients:
            await timed(client, later)
    for client in clients:
        await client.close()
    return {
        "connections": len(clients),
        "all_opened_and_answered_s": round(opened, 3),
        "ping_ms": figures(later),
    }


MODES: dict[str, Callable[[argparse.Namespace], dict[str, Any] | Coroutine[Any, Any, dict[str, Any]]]] = {
    "cycles": _cycles,
    "one": _one,
    "held": _held,
    "pings": _pings,
    "watch": _watch,
    "connections": _connections,
}


def main() -> None:
    """Do what is asked and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--racks", type=int, default=0, help="of the fabric")
    parser.add_argument("--racks-per-job", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="jobs, requests or connections at the same time")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two requests or pings")
    options = parser.parse_args()
    outcome = MODES[options.mode](options)
    tell(asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome)


if __name__ == "__main__":
    main()
