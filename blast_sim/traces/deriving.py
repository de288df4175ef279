"""Multicasts from shuffles: coflow traces hold shuffles only, so what is broadcast has to be assumed, by rules.

job-broadcast (R1)  every job sends a file from one of its mapper racks (drawn by seed) to all its other racks, and
                    begins its shuffle then; jobs within one rack broadcast nothing
one-to-many (R2)    coflows of one mapper and several reducers are multicasts, all others shuffles
repeated (R3)       every multicast comes again, once an iteration (Blast, section V-B: one request an iteration)
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from blast_sim.traces.coflow_file import Coflow, CoflowTrace
from blast_sim.traces.workload import MEGABYTE, Shuffle, TraceMulticast, Workload

Rule = Literal["job-broadcast", "one-to-many"]
RULES: tuple[Rule, ...] = ("job-broadcast", "one-to-many")
Measure = Literal["maximum", "median"]


def whole_bytes(megabytes: float) -> int:
    """Return a size in bytes, rounded up; a product of floats may exceed a whole number by its rounding error."""
    size = megabytes * MEGABYTE
    nearest = round(size)
    return nearest if math.isclose(size, nearest, rel_tol=4 * sys.float_info.epsilon) else math.ceil(size)


@dataclass(frozen=True, slots=True)
class Volume:
    """The size of a multicast: fixed megabytes, or a statistic of the data that its coflow's reducers fetch."""

    megabytes: float = 300.0
    measure: Measure | None = None

    def of(self, sizes: Sequence[float]) -> int:
        """Return bytes, from the reducers' data in megabytes."""
        match self.measure:
            case "maximum":
                megabytes = max(sizes)
            case "median":
                megabytes = statistics.median(sizes)
            case None:
                megabytes = self.megabytes
        return max(1, whole_bytes(megabytes))

    def __str__(self) -> str:
        return self.measure or f"{self.megabytes:g} MB"


def derived(trace: CoflowTrace, rule: Rule, volume: Volume, seed: int) -> Workload:
    """Derive the multicasts of the trace by this rule, and its shuffles."""
    multicasts, shuffles = [], []
    for coflow in trace.coflows:
        multicast = _broadcast(coflow, volume, seed) if rule == "job-broadcast" else _one_to_many(coflow, volume)
        if multicast is not None:
            multicasts.append(multicast)
        if multicast is None or rule == "job-broadcast":
            shuffles.append(_shuffle(coflow, multicast))
    rules: dict[str, str | int | float] = {"rule": rule, "volume": str(volume), "seed": seed}
    return Workload(trace.racks, tuple(multicasts), tuple(shuffles), rules)


def repeated(workload: Workload, iterations: int, period: float) -> Workload:
    """Repeat every multicast, once per period (seconds); shuffles run once, after the first repetition."""
    again = [
        replace(one, name=f"{one.name}/{number}", arrival=one.arrival + number * period)
        for one in workload.multicasts
        for number in range(iterations)
    ]
    ordered = tuple(sorted(again, key=lambda one: one.arrival))
    shuffles = tuple(one if one.after is None else replace(one, after=f"{one.after}/0") for one in workload.shuffles)
    rules = {**workload.rules, "iterations": iterations, "period_seconds": period}
    return replace(workload, multicasts=ordered, shuffles=shuffles, rules=rules)


def first(workload: Workload, count: int) -> Workload:
    """Return the first `count` multicasts, and the shuffles up to the last one's arrival."""
    kept = workload.multicasts[:count]
    end = kept[-1].arrival if kept else 0.0
    names = {None, *(one.name for one in kept)}
    shuffles = tuple(one for one in workload.shuffles if one.arrival <= end and one.after in names)
    return replace(workload, multicasts=kept, shuffles=shuffles, rules={**workload.rules, "first": count})


def sender_among(racks: Iterable[int], seed: int, name: str) -> int:
    """Draw the sender's rack from the seed and the job's name only: a job left out changes no other."""
    return random.Random(f"trace/{seed}/{name}").choice(sorted(racks))


def _broadcast(coflow: Coflow, volume: Volume, seed: int) -> TraceMulticast | None:
    sender = sender_among(coflow.mappers, seed, coflow.name)
    return _multicast(coflow, sender, coflow.racks, volume)


def _one_to_many(coflow: Coflow, volume: Volume) -> TraceMulticast | None:
    if len(coflow.mappers) > 1 or len(coflow.reducers) < 2:
        return None
    return _multicast(coflow, coflow.mappers[0], set(coflow.reducers), volume)


def _multicast(coflow: Coflow, sender: int, racks: set[int], volume: Volume) -> TraceMulticast | None:
    receivers = tuple(sorted(racks - {sender}))
    if not receivers:
        return None
    return TraceMulticast(coflow.name, coflow.arrival_ms / 1000, sender, receivers, volume.of(coflow.megabytes))


def _shuffle(coflow: Coflow, multicast: TraceMulticast | None) -> Shuffle:
    sizes = tuple(map(whole_bytes, coflow.megabytes))
    after = None if multicast is None else multicast.name
    return Shuffle(coflow.name, coflow.arrival_ms / 1000, coflow.mappers, coflow.reducers, sizes, after)
