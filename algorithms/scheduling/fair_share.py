"""Weighted fair sharing between tenants; within a tenant, shortest remaining first."""

from __future__ import annotations

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import State
from algorithms.scheduling.srpt_lease import ShortestRemaining


class FairShare(ShortestRemaining):
    """The tenant with the fewest rack-seconds per weight goes first.

    The remaining time is added in the same unit. So two tenants that always wait for the same ports stay, per weight,
    within the largest such addend and one lease of each other, however differently their jobs are sized.
    """

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the tenant's account plus the job's own key, per weight."""
        tenant = job.group.tenant
        return state.tenants.account(tenant) + super().key(job, now, state) / state.tenants.weight(tenant)
