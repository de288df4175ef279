"""Policy that orders multicasts by their number of racks."""

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Dedicated, State


class NarrowestFirst(Dedicated):
    """Fewest racks first, because small groups use the fewest ports. A grant lasts until the transfer is done."""

    interface = 1

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the number of racks. The job with the lowest key is served first; ties are broken by submission time.

        Parameters
        ----------
        job : Job
            The job: its racks (`job.group.racks`), seconds of data (`job.size`, `job.remaining`), deadline, tenant.
        now : float
            Seconds since the start of the simulation.
        state : State
            Further input of a policy: setup time in seconds, and the optical usage of each tenant.
        """
        return float(job.group.racks)
