"""A policy: which multicast gets light first."""

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Dedicated, State


class NarrowestFirst(Dedicated):
    """Fewest racks first: narrow groups take the fewest ports from others. Light stays until a transfer is done."""

    interface = 1

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the number of racks: the job with the lowest key goes first, of equal keys the one that asked first.

        Parameters
        ----------
        job : Job
            The job: its racks (`job.group.racks`), seconds of data (`job.size`, `job.remaining`), deadline, tenant.
        now : float
            Seconds since the start of the simulation.
        state : State
            What a policy may know beside the job: seconds of set-up, and how much light each tenant has had.
        """
        return float(job.group.racks)
