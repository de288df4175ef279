"""A seeded mix of requests under one policy, with arrival, completion and result of each.

Sizes are heavy-tailed (a Pareto distribution cut at both ends), groups have two to five racks, arrivals are a Poisson
process: the traffic of a busy cluster in the proportions of the lab.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from blast_api.ttypes import Event, EventKind, MulticastRequest
from blast_client import AsyncClient
from blast_client.send.part_sending import PartSent
from blast_client.send.sending import send
from blast_transport.base.report import TransferResult
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.topology.plan import LabPlan

SHAPE = 1.1
"""Shape of the Pareto distribution; below 2 its variance is dominated by the largest sample."""

MIN_SECONDS, MAX_SECONDS = 0.15, 5.0
"""Shortest and longest transfer, in seconds at the optical rate."""

MAX_RECEIVERS = 4
_PREPARATION_SECONDS = 1.0
"""Seconds before its arrival at which a request's file is written."""
_CHANCE_TO_PAUSE, _CHANCE_TO_SPLIT = 0.7, 0.5


@dataclass(frozen=True, slots=True)
class MixRequest:
    """A request of the mix, which arrives `at` seconds after the start."""

    name: str
    at: float
    sender: str
    receivers: tuple[str, ...]
    size: int
    may_pause: bool
    may_split: bool


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """The result of a request.

    `seconds` is the time from its arrival to the last receiver's confirmation; `intact` compares SHA-256;
    `compute_seconds` is the controller's computation for the first grant.
    """

    asked: MixRequest
    seconds: float
    parts: tuple[PartSent, ...]
    intact: bool
    compute_seconds: float = 0.0

    @property
    def pauses(self) -> int:
        """The number of pauses of all parts."""
        return sum(part.pauses for part in self.parts)

    @property
    def complete(self) -> bool:
        """True if every receiver was served by exactly one part and has the data."""
        reached = sorted(name for part in self.parts if part.complete for name in part.receivers)
        return self.intact and reached == sorted(self.asked.receivers)


@dataclass(frozen=True, slots=True)
class MixOutcome:
    """The result of a mix under one policy."""

    policy: str
    served: tuple[ServedRequest, ...]

    @property
    def mean_seconds(self) -> float:
        """Mean completion time."""
        return statistics.fmean(one.seconds for one in self.served)

    @property
    def longest_seconds(self) -> float:
        """The longest completion time."""
        return max(one.seconds for one in self.served)

    @property
    def pauses(self) -> int:
        """The number of pauses of all transfers."""
        return sum(one.pauses for one in self.served)

    @property
    def split(self) -> int:
        """The number of requests that were served in several parts."""
        return sum(len(one.parts) > 1 for one in self.served)


def draw(plan: LabPlan, count: int, seed: str, load: float = 3.0) -> list[MixRequest]:
    """Return `count` requests of a mix, the same for the same seed.

    Arrivals are so dense that the total transfer time is `load` times the arrival period.
    """
    chance = random.Random(f"blast/lab-mix/{seed}")
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]
    seconds = [_seconds(chance) for _ in range(count)]
    every = statistics.fmean(seconds) / load
    asked, at = [], 0.0
    for number, length in enumerate(seconds):
        sender, *receivers = chance.sample(hosts, chance.randint(2, min(len(hosts), MAX_RECEIVERS + 1)))
        size = round(length * plan.light_rate_mbps * 1e6 / 8)
        pause, split = chance.random() < _CHANCE_TO_PAUSE, chance.random() < _CHANCE_TO_SPLIT
        asked.append(MixRequest(f"mix-{number}", at, sender, tuple(receivers), size, pause, split))
        at += chance.expovariate(1 / every)
    return asked


def _seconds(chance: random.Random) -> float:
    """Draw a bounded Pareto variate, by inversion."""
    low, high = MIN_SECONDS**SHAPE, MAX_SECONDS**SHAPE
    drawn = chance.random()
    seconds: float = (-(drawn * high - drawn * low - high) / (high * low)) ** (-1 / SHAPE)
    return seconds


def serve(stage: Stage, asked: Sequence[MixRequest], policy: str, done: Callable[[ServedRequest], None]) -> MixOutcome:
    """Send the whole mix in the stage's lab; call `done` after each request. Raises what sending raises."""
    with Receivers(stage, stage.first_hosts()) as receivers:
        served = asyncio.run(_Mix(stage, receivers, done).run(asked))
    return MixOutcome(policy, tuple(served))


class _MeasuringClient(AsyncClient):
    """A client that records the computation time of each request's first grant, in seconds by key."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.computes: dict[str, float] = {}

    async def await_event(self, key: str, after_sequence: int = 0, timeout: float = 60.0) -> Event:
        event = await super().await_event(key, after_sequence, timeout)
        if event.kind == EventKind.GRANTED and event.grant and event.grant.timings:
            self.computes.setdefault(key, (event.grant.timings.computeMs or 0.0) / 1000)
        return event


class _Mix:
    def __init__(self, stage: Stage, receivers: Receivers, done: Callable[[ServedRequest], None]) -> None:
        self._stage, self._receivers, self._done = stage, receivers, done

    async def run(self, mix: Sequence[MixRequest]) -> list[ServedRequest]:
        client = _MeasuringClient(self._stage.lab.thrift)
        async with client:
            began = time.monotonic() + _PREPARATION_SECONDS
            return list(await asyncio.gather(*(self._one(client, asked, began + asked.at) for asked in mix)))

    async def _one(self, client: _MeasuringClient, asked: MixRequest, arrival: float) -> ServedRequest:
        """Send one request; its file exists only during that time, because all files together may not fit."""
        await _until(arrival - _PREPARATION_SECONDS)
        path = self._path(asked)
        await asyncio.to_thread(lambda: path.write_bytes(os.urandom(asked.size)))
        await _until(arrival)
        arrived = time.monotonic()
        request = MulticastRequest(
            key=asked.name,
            sender=asked.sender,
            receivers=list(asked.receivers),
            bytes=asked.size,
            mayPause=asked.may_pause,
            maySplit=asked.may_split,
        )
        parts = await send(client, request, lambda receivers, route: self._carry(asked, receivers, route))
        seconds = time.monotonic() - arrived
        intact = await asyncio.to_thread(self._receivers.hashes_equal, path, asked.receivers)
        path.unlink()
        served = ServedRequest(asked, seconds, tuple(parts), intact, client.computes.get(asked.name, 0.0))
        self._done(served)
        return served

    def _carry(self, asked: MixRequest, receivers: Sequence[str], route: Route) -> TransferResult:
        def carry() -> TransferResult:
            settings = self._receivers.settings_of(asked.sender)
            with Sender(self._receivers.addresses(receivers), settings) as sender:
                return sender.send_file(self._path(asked), route)

        return run_in_network_of(self._stage.lab.host(asked.sender).pid, carry)

    def _path(self, asked: MixRequest) -> Path:
        return self._stage.lab.directory / f"{asked.name}.data"


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
