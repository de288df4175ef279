"""Least attained service with leases: shortest first for transfers whose size nobody knows."""

from __future__ import annotations

import math

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State


class LeastAttained(Policy):
    """Who has had least light x sqrt(racks) goes first; sizes are not looked at."""

    def key(self, job: Job, now: float, state: State) -> float:
        """Attained time x sqrt(racks) ÷ weight; who waits carries the set-up that a change would cost."""
        set_up = 0.0 if job.continues else state.set_up
        return (job.attained + set_up) * math.sqrt(job.group.racks) / job.weight
