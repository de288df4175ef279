"""A fabric of racks on which multicasts arrive, wait and are served: the scheduler itself on a virtual clock.

The model: every rack sends and receives 1250 MB/s over light, a start or restart costs 25 ms without data, a decision
is taken at every event, all splitters are 1:4. The workloads are regenerated from their names and seeds.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import Vertices, directional_ports, shared_ports
from algorithms.scheduling.job import Job, PartName, multicast
from algorithms.scheduling.policy import Policy, State
from algorithms.scheduling.scheduler import Scheduler
from algorithms.scheduling.selection import Selection

RACKS = 120
MEGABYTES_PER_SECOND = 1250.0
"""10 Gbit/s, the rate of an optical port in the paper."""
SET_UP = 0.025
"""Seconds; the paper measures less than 25 ms (section V-B)."""
FAN_OUT = 4
CLOSED_SECONDS = 300.0
CLOSED_JOBS = 100


@dataclass(frozen=True)
class Arrival:
    """A multicast: when, how long at line rate, and its racks, the sender's first."""

    at: float
    seconds: float
    racks: tuple[int, ...]


def _clip(x: float, low: float, high: float) -> float:
    return max(low, min(high, x))


def _log_normal(rng: random.Random, median: float, sigma: float) -> float:
    return math.exp(rng.gauss(math.log(median), sigma))


MEGABYTES: dict[str, Callable[[random.Random], float]] = {
    "S3": lambda rng: 300.0,
    "S3-LN": lambda rng: _clip(_log_normal(rng, 300, 1.2), 1, 2e4),
    "ML": lambda rng: _clip(_log_normal(rng, 300, 1), 1, 2e4),
    "FB": lambda rng: _clip(_log_normal(rng, 30, 2), 1, 1e4),
}
GROUP_RACKS: dict[str, Callable[[random.Random], int]] = {
    "S3": lambda rng: 3,
    "S3-LN": lambda rng: 3,
    "ML": lambda rng: rng.randint(3, 25),
    "FB": lambda rng: min(60, 2 + int(rng.paretovariate(0.8))),
}
SPLITTERS = {"S3": 40, "S3-LN": 40, "ML": 120, "FB": 120}


def workload(kind: str, jobs: int, load: float, seed: int, racks: int = RACKS) -> list[Arrival]:
    """Draw multicasts of a kind at a load.

    The sum of rack-seconds, set-up included, divided by racks x duration is `load`.
    """
    rng = random.Random(f"sched/{kind}/{jobs}/{load}/{seed}/{racks}")
    drawn = []
    for _ in range(jobs):
        megabytes = MEGABYTES[kind](rng)
        width = GROUP_RACKS[kind](rng)
        drawn.append((megabytes / MEGABYTES_PER_SECOND, tuple(rng.sample(range(racks), width))))
    duration = sum((seconds + SET_UP) * len(group) for seconds, group in drawn) / (racks * load)
    at, arrivals = 0.0, []
    for seconds, group in drawn:
        at += rng.expovariate(jobs / duration)
        arrivals.append(Arrival(at, seconds, group))
    return arrivals


def fabric(splitters: int, directional: bool, racks: int = RACKS) -> tuple[Feasibility, Vertices]:
    """Return racks with one port, or one per direction, and `splitters` splitters."""
    if directional:
        return Feasibility([1] * (2 * racks), {FAN_OUT: splitters}), directional_ports(racks)
    return Feasibility([1] * racks, {FAN_OUT: splitters}), shared_ports


@dataclass
class CompletionOutcome:
    """The results of the requests: seconds from submission to the end of the last part, by request."""

    completion: dict[int, float] = field(default_factory=dict)
    first_wait: dict[int, float] = field(default_factory=dict)
    starts: int = 0
    leases: int = 0
    parts: Counter[int] = field(default_factory=Counter)


class CompletionModel:
    """Plays the scheduler's selections on a virtual clock, and reports completed requests."""

    def __init__(self, policy: Policy, splitters: int, directional: bool, racks: int = RACKS) -> None:
        free, self.vertices = fabric(splitters, directional, racks)
        self.scheduler = Scheduler(policy, {"ocs": free}, State(SET_UP))
        self.outcome = CompletionOutcome()
        self.now = 0.0
        self._ends: list[tuple[float, int, PartName, bool]] = []
        self._sequence = 0
        self._submitted: dict[int, float] = {}
        self._parts_left: Counter[int] = Counter()

    @property
    def next_end(self) -> float:
        """When something ends next."""
        return self._ends[0][0] if self._ends else math.inf

    def submit(self, request: int, seconds: float, racks: tuple[int, ...], now: float) -> None:
        """Submit a request to these racks, the sender's first, at the time `now`; its transfer takes `seconds`."""
        self.now = now
        self._submitted[request] = now
        self._parts_left[request] = self.outcome.parts[request] = 1
        group = multicast(request, racks, seconds, self.vertices)
        self._play(self.scheduler.arrive(Job(request, group, self.vertices(racks[0], ()), seconds, now), now))

    def step(self) -> int | None:
        """Process the next end; return the request that is complete by it, if any."""
        self.now, _, name, last = heapq.heappop(self._ends)
        if not last:
            self._play(self.scheduler.lease_end(name, self.now))
            return None
        self._play(self.scheduler.complete(name, self.now))
        request = int(str(name[0]))
        self._parts_left[request] -= 1
        if self._parts_left[request]:
            return None
        self.outcome.completion[request] = self.now - self._submitted[request]
        return request

    def _play(self, selection: Selection) -> None:
        for start in selection.starts:
            request = int(str(start.job.request))
            self.outcome.leases += 1
            if not start.job.continues:
                self.outcome.starts += 1
            if start.rest is not None:
                self._parts_left[request] += 1
                self.outcome.parts[request] += 1
            self.outcome.first_wait.setdefault(request, self.now - self._submitted[request])
            end = self.now + (0.0 if start.job.continues else SET_UP) + start.seconds
            self._sequence += 1
            heapq.heappush(self._ends, (end, self._sequence, start.job.name, start.last))


def play(policy: Policy, arrivals: list[Arrival], splitters: int, directional: bool) -> CompletionOutcome:
    """Play all arrivals until every request is complete."""
    rack_fabric = CompletionModel(policy, splitters, directional)
    coming: Iterator[tuple[int, Arrival]] = iter(enumerate(arrivals))
    pending = next(coming, None)
    while pending is not None or rack_fabric.next_end < math.inf:
        if pending is not None and pending[1].at <= rack_fabric.next_end:
            request, arrival = pending
            rack_fabric.submit(request, arrival.seconds, arrival.racks, arrival.at)
            pending = next(coming, None)
        else:
            rack_fabric.step()
    return rack_fabric.outcome


def play_closed(policy: Policy, seed: int, directional: bool) -> CompletionOutcome:
    """Play 100 iterative jobs on random triples of racks for 300 s: each multicasts, then computes for 1 to 3 s."""
    rng = random.Random(f"closed/{seed}")
    jobs = []
    for _ in range(CLOSED_JOBS):
        seconds = min(5000.0, _log_normal(rng, 300, 1)) / MEGABYTES_PER_SECOND
        jobs.append((seconds, tuple(rng.sample(range(RACKS), 3))))
    rack_fabric = CompletionModel(policy, SPLITTERS["S3"], directional)
    computing = [(rng.uniform(1, 3), job) for job in range(CLOSED_JOBS)]
    heapq.heapify(computing)
    owner: dict[int, int] = {}
    while True:
        ready = computing[0][0] if computing else math.inf
        if min(ready, rack_fabric.next_end) > CLOSED_SECONDS:
            return rack_fabric.outcome
        if ready <= rack_fabric.next_end:
            at, job = heapq.heappop(computing)
            request = len(owner)
            owner[request] = job
            rack_fabric.submit(request, *jobs[job], at)
        else:
            done = rack_fabric.step()
            if done is not None:
                heapq.heappush(computing, (rack_fabric.now + rng.uniform(1, 3), owner[done]))
