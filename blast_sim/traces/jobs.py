"""Job tables: the machines that worked together, with times, but without the data that they exchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from blast_sim.traces.deriving import Volume, sender_among
from blast_sim.traces.workload import TraceMulticast, Workload

Placement = Literal["sorted", "hash"]
PLACEMENTS: tuple[Placement, ...] = ("sorted", "hash")


@dataclass(frozen=True, slots=True)
class TraceJob:
    """Machines that began to work together at `arrival` (seconds since the first of the trace)."""

    name: str
    arrival: float
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobTable:
    """Jobs in order of arrival; `left_out` have no machines or no time in the trace."""

    jobs: tuple[TraceJob, ...]
    left_out: int

    @classmethod
    def of(cls, jobs: Iterable[TraceJob], left_out: int) -> JobTable:
        """Return the jobs in order of arrival, with times counted from the first."""
        ordered = sorted(jobs, key=lambda job: (job.arrival, job.name))
        start = ordered[0].arrival if ordered else 0.0
        return cls(tuple(TraceJob(job.name, job.arrival - start, job.machines) for job in ordered), left_out)


def racks_of(machines: Iterable[str], per_rack: int, placement: Placement) -> dict[str, int]:
    """Assign a rack to every machine, because no trace publishes racks.

    With `sorted`, neighbors by name share a rack; with `hash`, a hash of the name selects it. The same machines always
    get the same racks.
    """
    names = sorted(set(machines), key=_natural)
    if placement == "sorted":
        return {name: place // per_rack for place, name in enumerate(names)}
    racks = -(-len(names) // per_rack)
    return {name: int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % racks for name in names}


def workload_of(table: JobTable, per_rack: int, placement: Placement, volume: Volume, seed: int) -> Workload:
    """Return a workload of one multicast for each job with machines in several racks, from a rack drawn by seed."""
    place = racks_of((machine for job in table.jobs for machine in job.machines), per_rack, placement)
    multicasts = []
    for job in table.jobs:
        racks = {place[machine] for machine in job.machines}
        if len(racks) > 1:
            sender = sender_among(racks, seed, job.name)
            receivers = tuple(sorted(racks - {sender}))
            multicasts.append(TraceMulticast(job.name, job.arrival, sender, receivers, volume.of([volume.megabytes])))
    rules: dict[str, str | int | float] = {
        "rule": "job groups",
        "volume": str(volume),
        "seed": seed,
        "machines_per_rack": per_rack,
        "placement": placement,
        "left_out": table.left_out,
    }
    return Workload(max(place.values(), default=0) + 1, tuple(multicasts), (), rules)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers within names by value, so that m10 comes after m9."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]
    return [(len(part), part) if part.isdecimal() else (-1, part) for part in parts]
