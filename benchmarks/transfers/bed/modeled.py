"""Comparison of real pipelines on a bed with the same pipelines in the simulator.

The time runs from the first data at any receiver to the last data at all receivers, by the counters of their
interfaces. The simulator does not model sessions, connections and confirmations: `session_s` is the time that these
add, from the first message of the sender to the last confirmed copy. Links up to 50 Mbit/s serialize packet by packet,
because a shaper with a bucket of super-packets would pass each forwarded block at once and hide the time that it takes
to fill a pipeline. Faster links have such a bucket, because two cores cannot forward that many packets; there, filling
takes little time. `slow_host` sends at a quarter of the rate, so that hops differ.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Self

import numpy as np

from algorithms.balanced.network import Network
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import PACKETS, Bed, Plan
from benchmarks.transfers.bed.run import transfer
from benchmarks.transfers.bed.shape import Shape
from benchmarks.transfers.bed.tools.blast import BlastPipeline
from blast_sim.flow.engine import Simulation
from blast_sim.flow.sites import SiteNetwork
from blast_sim.methods.method import Multicast, Phased, World
from blast_sim.methods.pipeline import pipeline
from mininet_topos.kernel.netdev import batch

MAX_DIFFERENCE = 0.10
SLOWER = 4
_BURST, _BY_PACKET_MBPS = 3200, 50.0
"""Bytes: two packets; and the fastest links that have so small a bucket."""
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.002
_CERTAINLY_DATA = 32 << 10
"""Bytes: more than the messages before the data."""
_FRAME, _PAYLOAD = 1514, 1448


@dataclass(frozen=True)
class Chain:
    """A chain of `hops` links at `rate_mbps`; host `slow_host`, if any, sends at a quarter of that rate."""

    hops: int
    rate_mbps: float
    slow_host: int | None = None

    @property
    def shapes(self) -> list[Shape]:
        """The shape of each host's outgoing link."""
        slow = self.rate_mbps / SLOWER
        return [
            Shape(rate, _BURST, latency_ms=100) if self.by_packet else Shape(rate)
            for host in range(self.hops + 1)
            for rate in [slow if host == self.slow_host else self.rate_mbps]
        ]

    @property
    def by_packet(self) -> bool:
        """Return whether links serialize packet by packet."""
        return self.rate_mbps <= _BY_PACKET_MBPS

    def on_the_wire(self, size: int) -> float:
        """Return the bytes that interfaces count for `size` bytes of a file; a super-packet has one set of headers."""
        return size * _FRAME / _PAYLOAD if self.by_packet else size

    @property
    def name(self) -> str:
        """For tables."""
        slow = "" if self.slow_host is None else f", host {self.slow_host} at a quarter"
        return f"{self.hops} hops, {self.rate_mbps:g} Mbit/s{slow}"


def simulated(chain: Chain, size: int) -> float:
    """Return the time of the simulator; links have the payload rate of TCP."""
    rates = np.array([shape.tcp_limit for shape in chain.shapes], np.float64)
    count = len(rates)
    widths = np.tile(rates[:, np.newaxis], count) * (1 - np.eye(count))
    receivers = tuple(range(1, count))
    hosts = Network(tuple(map(str, range(count))), 0, receivers, widths, rates, np.full(count, rates.max()))
    network = SiteNetwork.of(hosts)
    world = World(network, Simulation(network.capacities), Random(0))
    ended: list[float] = []
    method = Phased(world, pipeline)
    method.send(Multicast("m", 0, receivers, size), lambda: ended.append(world.simulation.clock.now))
    world.simulation.run(lambda: bool(ended))
    return float(ended[0])


def real(chain: Chain, size: int, repeats: int) -> list[Transferred]:
    """Return the times of real transfers. Raises PrerequisiteError, LabError."""
    found = []
    plan = Plan(chain.hops, light=False)
    with script.bed_and_file(plan, size) as (bed, source):
        _shape(bed, chain)
        for _ in range(repeats):
            limit = _START_SECONDS + 3 * simulated(chain, size)
            with Arrivals(bed) as arrivals:
                outcome = transfer(BlastPipeline(), bed, source, source.parent, limit)
            if not outcome.failure:
                seconds = arrivals.seconds(chain.on_the_wire(size), chain.rate_mbps)
                found.append(Transferred(seconds, float(outcome.notes["since_first_byte"]) - seconds))
    return found


@dataclass(frozen=True)
class Transferred:
    """Seconds of the data, and the additional seconds of the session."""

    seconds: float
    session: float


class Arrivals:
    """A watcher of the number of bytes that each receiver has received."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._seen: list[tuple[float, list[int]]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="arrivals", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        counts = [self._bed.received_bytes(host) for host in self._bed.plan.hosts[1:]]
        self._seen.append((time.monotonic(), counts))

    def seconds(self, wire_bytes: float, first_mbps: float) -> float:
        """Return the time from the first byte at any receiver, where it arrives at `first_mbps`, to the last at all."""
        _, before = self._seen[0]
        received = [(at, [now - then for now, then in zip(counts, before, strict=True)]) for at, counts in self._seen]
        began = next(at for at, counts in received if max(counts) >= _CERTAINLY_DATA)
        ended = next(at for at, counts in received if min(counts) >= wire_bytes)
        return ended - began + 8e-6 * _CERTAINLY_DATA / first_mbps


def _shape(bed: Bed, chain: Chain) -> None:
    for host, shape in enumerate(chain.shapes):
        if chain.by_packet:
            batch("ip", [f"link set dev {PACKETS} gso_max_segs 1"], bed.pid(host))
        batch("tc", shape.lines(PACKETS), bed.pid(host))


def rows(chains: Sequence[Chain], megabytes: Sequence[int], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each chain and size; the median decides. Raises PrerequisiteError, LabError."""
    for chain in chains:
        for size in megabytes:
            expected, found = simulated(chain, size * 1_000_000), real(chain, size * 1_000_000, repeats)
            times = [one.seconds for one in found]
            median = statistics.median(times) if times else None
            ratio = None if median is None else median / expected
            yield {
                "pipeline": chain.name,
                "megabytes": size,
                "simulator_s": expected,
                "real_s": median,
                "min_s": min(times, default=None),
                "largest_s": max(times, default=None),
                "session_s": statistics.median(one.session for one in found) if found else None,
                "ratio": ratio,
                "claim_kept": ratio is not None and abs(ratio - 1) <= MAX_DIFFERENCE,
            }


def with_slow_hop(chain: Chain) -> Chain:
    """Return the chain whose middle host is slow."""
    return replace(chain, slow_host=chain.hops // 2)
