"""Iterative jobs (Blast, figure 1): each iteration multicasts the model, computes, shuffles and aggregates."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle

from blast_sim.experiments.groups import MEGABYTE, servers_of
from blast_sim.experiments.rounds import JobRound
from blast_sim.fair import Paths
from blast_sim.flow.network import RackNetwork
from blast_sim.flow.phases import Graph, Phase, in_sequence
from blast_sim.methods.method import Method, Multicast, World
from blast_sim.scenarios.schema import JobSection


@dataclass(slots=True)
class JobTimes:
    """When a job was complete, and for how many of these seconds it multicast, and moved data at all."""

    kind: str
    completion: float = 0.0
    multicast: float = 0.0
    communication: float = 0.0
    rounds: list[JobRound] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A job on its racks; the first server of the first rack is the master, all others are workers."""

    name: str
    section: JobSection
    servers: tuple[int, ...]

    @property
    def master(self) -> int:
        """The server that multicasts and aggregates."""
        return self.servers[0]

    @property
    def workers(self) -> tuple[int, ...]:
        """The servers that compute."""
        return self.servers[1:]


def draw_jobs(sections: Sequence[JobSection], network: RackNetwork, seed: int) -> list[SimulatedJob]:
    """Draw all jobs, dealt to racks in random order; racks serve several jobs only when every rack has one."""
    deal = cycle(random.Random(f"flow/jobs/{seed}").sample(range(network.racks), network.racks))
    return [
        SimulatedJob(
            f"{section.name}-{number}", section, tuple(servers_of(network, [next(deal) for _ in range(section.racks)]))
        )
        for section in sections
        for number in range(section.count)
    ]


class JobRun:
    """One job at work; `ended` is called when its last iteration is over."""

    def __init__(
        self, job: SimulatedJob, world: World, method: Method, dice: random.Random, ended: Callable[[], None]
    ) -> None:
        self.times = JobTimes(job.section.name)
        self._job, self._world, self._method, self._dice, self._ended = job, world, method, dice, ended
        self._clock = world.simulation.clock
        self._iterations: Iterator[int] = iter(range(job.section.iterations))
        self._began = 0.0

    def next_iteration(self) -> None:
        """Start the multicast of the next iteration, or end the job after the last one."""
        number = next(self._iterations, None)
        if number is None:
            self.times.completion = self._clock.now
            self._ended()
            return
        self._began = self._clock.now
        section, job = self._job.section, self._job
        model = Multicast(f"{job.name}/{number}", job.master, job.workers, round(section.megabytes * MEGABYTE))
        self._method.send(model, self._compute)

    def _compute(self) -> None:
        seconds = self._clock.now - self._began
        self.times.multicast += seconds
        self.times.communication += seconds
        self.times.rounds.append(JobRound(self._began, self._clock.now))
        spread = self._job.section.compute_spread
        pause = self._job.section.compute_s * self._dice.uniform(1 - spread, 1 + spread)
        self._clock.at(self._clock.now + pause, self._exchange)

    def _exchange(self) -> None:
        began = self._clock.now
        phases = [phase for phase in (self._shuffle(), self._aggregation()) if len(phase.paths)]

        def over() -> None:
            self.times.communication += self._clock.now - began
            self.next_iteration()

        Graph(self._world.simulation, in_sequence(*phases), over).start()

    def _shuffle(self) -> Phase:
        """Return the flows of every worker to `shuffle_peers` others, evenly spread over all workers."""
        section, workers = self._job.section, self._job.workers
        if not section.shuffle_mb:
            return Phase()
        steps = [(peer + 1) * len(workers) // (section.shuffle_peers + 1) for peer in range(section.shuffle_peers)]
        pairs = [(n, (n + step) % len(workers)) for n in range(len(workers)) for step in steps]
        paths = self._unicast([workers[one] for one, _ in pairs], [workers[other] for _, other in pairs])
        return Phase(paths, 8.0 * MEGABYTE * section.shuffle_mb / section.shuffle_peers)

    def _aggregation(self) -> Phase:
        section, workers = self._job.section, self._job.workers
        if not section.aggregation_mb:
            return Phase()
        paths = self._unicast(workers, [self._job.master] * len(workers))
        return Phase(paths, 8.0 * MEGABYTE * section.aggregation_mb / len(workers))

    def _unicast(self, sources: Sequence[int], targets: Sequence[int]) -> Paths:
        return self._world.network.unicast(sources, targets)
