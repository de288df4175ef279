"""Shortest remaining processing time with leases: the default."""

from __future__ import annotations

import math

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State


class ShortestRemaining(Policy):
    """Least remaining service time x sqrt(racks) first, in leases, wide groups in parts."""

    keys_fall = False

    def key(self, job: Job, now: float, state: State) -> float:
        """Return remaining time x sqrt(racks) ÷ weight; a waiting job adds the set-up of a change."""
        return state.to_go(job) * math.sqrt(job.group.racks) / job.weight
