"""Least attained service with leases: approximates shortest first for transfers of unknown size."""

from __future__ import annotations

import math

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State


class AttainedService(Policy):
    """Least attained time x sqrt(racks) first; sizes are ignored."""

    keys_fall = False

    def key(self, job: Job, now: float, state: State) -> float:
        """Return attained time x sqrt(racks) ÷ weight; a waiting job adds the set-up of a change."""
        set_up = 0.0 if job.continues else state.set_up
        return (job.attained + set_up) * math.sqrt(job.group.racks) / job.weight
