"""The policy interface: the order of jobs, their leases, their splitting, and when a job is overdue."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from algorithms.scheduling.job import Job
from algorithms.scheduling.tenants import Tenants

QUANTUM = 0.5
"""Seconds of data in a lease: long relative to the set-up, short relative to the transfers that block others."""

AGING = 20.0
"""A job is overdue when it has waited this many times its own size."""

MIN_TO_GO = 1e-3
"""Lower bound of the remaining seconds in the objective: a job that is almost done must not outweigh all others."""

SPLIT_SHARE = 0.75
"""Minimum share of the receivers in a separate part."""


@dataclass
class State:
    """The state that a policy may use besides the job.

    Parameters
    ----------
    set_up : float, optional
        Cost of a start in seconds.
    tenants : Tenants, optional
        The accounts of the tenants.
    """

    set_up: float = 0.025
    tenants: Tenants = field(default_factory=Tenants)

    def to_go(self, job: Job) -> float:
        """Return the seconds that a job still needs: set-up, unless it continues, and data.

        A job of unknown size is expected to send as much again as it has sent, the best guess for heavy tails.

        Parameters
        ----------
        job : Job
            A waiting or continuing job.

        Returns
        -------
        float
            In seconds.
        """
        set_up = 0.0 if job.continues else self.set_up
        return set_up + (job.remaining if job.known else max(job.attained, QUANTUM))


class Policy(ABC):
    """A rule over time. The defaults of every method but `key` suit a preemptive rule that starves no request.

    Attributes
    ----------
    keys_fall : bool
        Whether the key of a waiting job may become smaller. If it cannot, jobs are always served in the exact order of
        their keys, and no time is spent on jobs that are not tried.
    """

    keys_fall: bool = True

    @abstractmethod
    def key(self, job: Job, now: float, state: State) -> float:
        """Return the key of a job: a lower key goes first, among jobs of the same priority of which none is overdue.

        If keys may fall (`keys_fall`), the order of two waiting jobs should change rarely: a key is computed when a job
        is tried, and again at most about once a second.

        Parameters
        ----------
        job : Job
            The job to rank.
        now : float
            The current time in seconds.
        state : State
            Set-up time and accounts of tenants.

        Returns
        -------
        float
            In any unit, the same for all jobs.
        """

    def objective(self, job: Job, state: State) -> float:
        """Return the value of serving a job now, for an optimizer that maximizes a sum.

        Parameters
        ----------
        job : Job
            The job to value.
        state : State
            Set-up time and accounts of tenants.

        Returns
        -------
        float
            Larger for shorter and narrower jobs.
        """
        return job.weight / (max(state.to_go(job), MIN_TO_GO) * math.sqrt(job.group.racks))

    def fewest_receivers(self, job: Job) -> int:
        """Return the minimum number of free receivers for a start; the others then become a separate part.

        Parameters
        ----------
        job : Job
            A waiting job.

        Returns
        -------
        int
            All receivers if the job may not be split.
        """
        receivers = job.receivers.bit_count()
        if job.parts <= 1:
            return receivers
        return max(1, math.ceil(SPLIT_SHARE * receivers))

    def quantum(self, job: Job) -> float | None:
        """Return the seconds of data after which a job competes again.

        Parameters
        ----------
        job : Job
            A job that starts or continues.

        Returns
        -------
        float or None
            In seconds at line rate; None: the job runs until it is done.
        """
        return QUANTUM if job.may_pause else None

    def max_wait(self, job: Job) -> float:
        """Return the wait after which a job is overdue: it then goes first, and ports are kept free for it.

        Parameters
        ----------
        job : Job
            A waiting job.

        Returns
        -------
        float
            In seconds after the submission of its request.
        """
        return AGING * max(QUANTUM, job.size)


class Dedicated(Policy):
    """The base of rules without leases and parts: a grant is for the whole group and until the end."""

    def fewest_receivers(self, job: Job) -> int:
        """Return the number of all receivers.

        Parameters
        ----------
        job : Job
            A waiting job.

        Returns
        -------
        int
            The job is never split.
        """
        return job.receivers.bit_count()

    def quantum(self, job: Job) -> float | None:
        """Return None: a job runs until it is done.

        Parameters
        ----------
        job : Job
            A job that starts.

        Returns
        -------
        None
        """
        return None

    def max_wait(self, job: Job) -> float:
        """Return infinity: a job is never overdue.

        Ports kept free would be idle for as long as whole transfers take, at the cost of all other jobs.

        Parameters
        ----------
        job : Job
            A waiting job.

        Returns
        -------
        float
            Infinity.
        """
        return math.inf


def chunk(job: Job, quantum: float | None) -> float:
    """Return the seconds of data in the next lease: the quantum, or all remaining data if that is hardly more."""
    if quantum is None or (job.known and job.remaining < 1.25 * quantum):
        return job.remaining
    return quantum
