"""What a policy decides: who goes first, for how long, what may be split, and when a job has waited long enough."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from algorithms.scheduling.job import Job
from algorithms.scheduling.tenants import Tenants

QUANTUM = 0.5
"""Seconds of data in a lease: long against the set-up, short against the transfers that make others wait."""

AGING = 20.0
"""A job is overdue when it has waited this many times its own size."""

MIN_TO_GO = 1e-3
"""Seconds of light that are worth as much as less: what has nothing left to send is not worth all else together."""

SPLIT_SHARE = 0.75
"""The least share of the receivers that a part of their own may have."""


@dataclass
class State:
    """What a policy may know beside the job: `set_up` is the seconds that a start costs, `tenants` who had how much."""

    set_up: float = 0.025
    tenants: Tenants = field(default_factory=Tenants)

    def to_go(self, job: Job) -> float:
        """Seconds of light that the job still needs: set-up, unless it has its light, and data.

        Of a job of unknown size as much is expected to follow as has been sent, the best guess for heavy tails.
        """
        set_up = 0.0 if job.continues else self.set_up
        return set_up + (job.remaining if job.known else max(job.attained, QUANTUM))


class Policy(ABC):
    """A rule over time. The default of every method but `key` suits a pre-emptive rule that starves no one."""

    @abstractmethod
    def key(self, job: Job, now: float, state: State) -> float:
        """Lower goes first, among jobs of the same priority of which none is overdue.

        The order of two waiting jobs should change rarely: a key is computed when a job is tried, and again at most
        about once a second.
        """

    def objective(self, job: Job, state: State) -> float:
        """What serving the job now is worth to an optimizer that maximizes a sum: more for shorter and narrower."""
        return job.weight / (max(state.to_go(job), MIN_TO_GO) * math.sqrt(job.group.racks))

    def fewest_receivers(self, job: Job) -> int:
        """How many receivers must be free at least to be served now, the others becoming a part of their own."""
        receivers = job.receivers.bit_count()
        if job.parts <= 1:
            return receivers
        return max(1, math.ceil(SPLIT_SHARE * receivers))

    def quantum(self, job: Job) -> float | None:
        """Seconds of data after which the job competes again; None: it keeps its light until it is done."""
        return QUANTUM if job.may_pause else None

    def max_wait(self, job: Job) -> float:
        """Seconds after submission when the job is overdue: before all others, and ports are kept free for it."""
        return AGING * max(QUANTUM, job.size)


class Dedicated(Policy):
    """What rules without leases and parts share: a grant is for the whole group and until the end."""

    def fewest_receivers(self, job: Job) -> int:
        """All of them."""
        return job.receivers.bit_count()

    def quantum(self, job: Job) -> float | None:
        """Until it is done."""
        return None

    def max_wait(self, job: Job) -> float:
        """Never overdue: ports kept free would stand idle for as long as whole transfers take, at everybody's cost."""
        return math.inf


def chunk(job: Job, quantum: float | None) -> float:
    """Seconds of data in the next lease: the quantum, or all that remains where that is hardly more."""
    if quantum is None or (job.known and job.remaining < 1.25 * quantum):
        return job.remaining
    return quantum
