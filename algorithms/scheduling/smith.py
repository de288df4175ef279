"""Weighted shortest first: Smith's rule with the square root of the racks as the machine share."""

from __future__ import annotations

import math

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Dedicated, State


class Smith(Dedicated):
    """Least service time x sqrt(racks) first; granted until the end.

    On one machine time ÷ weight is optimal for the mean (W. E. Smith, 1956); a job on r machines blocks more, and
    sqrt(r) is the exponent with the sqrt(#racks) guarantee in weighted set packing.
    """

    keys_fall = False

    def key(self, job: Job, now: float, state: State) -> float:
        """Return service time x sqrt(racks) ÷ weight."""
        return state.to_go(job) * math.sqrt(job.group.racks) / job.weight
