"""Earliest deadline first, by the latest possible start."""

from __future__ import annotations

import math

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State

WITHOUT_DEADLINE = 1e12
"""Added to the keys of jobs without an urgent deadline: later than any clock reading."""


class EarliestDeadline(Policy):
    """Least slack first, in leases.

    A job that can no longer meet its deadline, or has none, comes after those with a reachable deadline, shortest
    first: serving it earlier would only delay others as well.
    """

    keys_fall = False

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the latest time at which the job can start."""
        to_go = state.to_go(job)
        latest = math.inf if job.deadline is None else job.deadline - to_go
        if now <= latest < math.inf:
            return latest
        return WITHOUT_DEADLINE + to_go * math.sqrt(job.group.racks) / job.weight
