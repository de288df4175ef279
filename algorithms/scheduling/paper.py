"""The paper's rule (Blast, section III-C.2): most volume per rack first, dedicated until finished."""

from __future__ import annotations

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Dedicated, State


class Paper(Dedicated):
    """Largest volume ÷ racks first; a small transfer may wait for ever."""

    keys_fall = False

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the paper's score with its sign changed."""
        return -job.group.weight / job.group.racks

    def objective(self, job: Job, state: State) -> float:
        """Return the paper's objective, the volume."""
        return job.group.weight
