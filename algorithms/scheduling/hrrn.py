"""Highest response ratio next (P. Brinch Hansen, 1971)."""

from __future__ import annotations

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Dedicated, State


class HighestResponseRatio(Dedicated):
    """Largest (wait + service) ÷ service first: short ones early, long ones when they have waited; dedicated."""

    def key(self, job: Job, now: float, state: State) -> float:
        """The response ratio x weight, sign turned."""
        to_go = state.to_go(job)
        return -job.weight * (now - job.submitted_at + to_go) / to_go
