"""Highest response ratio next (P. Brinch Hansen, 1971)."""

from __future__ import annotations

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Dedicated, State


class ResponseRatio(Dedicated):
    """Largest (wait + service) ÷ service first: short jobs early, long ones after a wait; dedicated."""

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the negative response ratio x weight."""
        to_go = state.to_go(job)
        return -job.weight * (now - job.submitted_at + to_go) / to_go
