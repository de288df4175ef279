"""Deadlines: who must start soonest goes first."""

from __future__ import annotations

import math

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State

WITHOUT_DEADLINE = 1e12
"""Added to the keys of jobs that no deadline presses: later than any clock reading."""


class EarliestDeadline(Policy):
    """Least slack first, in leases.

    A job that can no longer keep its deadline, or has none, comes after those that can, shortest first: serving it
    in time's place would only make others late as well.
    """

    def key(self, job: Job, now: float, state: State) -> float:
        """The latest moment at which it can start."""
        to_go = state.to_go(job)
        latest = math.inf if job.deadline is None else job.deadline - to_go
        if now <= latest < math.inf:
            return latest
        return WITHOUT_DEADLINE + to_go * math.sqrt(job.group.racks) / job.weight
