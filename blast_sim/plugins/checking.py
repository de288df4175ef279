"""Checks of the values that plug-ins return, so that errors are attributed to the plug-in and not to the simulator."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State
from blast_sim.base.wrong_input import PluginFailedError, shown
from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World
from blast_sim.plugins.interface import MethodFunction


class CheckedPolicy(Policy):
    """A policy plug-in whose return values are checked."""

    def __init__(self, name: str, inner: Policy) -> None:
        self._name = name
        self._inner = inner
        self.keys_fall = inner.keys_fall

    def key(self, job: Job, now: float, state: State) -> float:
        """Return the checked key of a job.

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
            Lower goes first.

        Raises
        ------
        PluginFailedError
            If the plug-in returns no number, or NaN.
        """
        return self._number("key", self._inner.key(job, now, state))

    def objective(self, job: Job, state: State) -> float:
        """Return the checked value of serving a job now.

        Parameters
        ----------
        job : Job
            The job to value.
        state : State
            Set-up time and accounts of tenants.

        Returns
        -------
        float
            Larger goes first.

        Raises
        ------
        PluginFailedError
            If the plug-in returns no number, or NaN.
        """
        return self._number("objective", self._inner.objective(job, state))

    def fewest_receivers(self, job: Job) -> int:
        """Return the checked minimum number of free receivers for a start.

        Parameters
        ----------
        job : Job
            A waiting job.

        Returns
        -------
        int
            As the plug-in returned it.

        Raises
        ------
        PluginFailedError
            If the plug-in returns no whole number.
        """
        found = self._inner.fewest_receivers(job)
        if not isinstance(found, numbers.Integral):
            raise self._wrong("fewest_receivers", found, "a whole number")
        return int(found)

    def quantum(self, job: Job) -> float | None:
        """Return the checked time after which a job competes again.

        Parameters
        ----------
        job : Job
            A job that starts or continues.

        Returns
        -------
        float or None
            In seconds; None: the job runs until it is done.

        Raises
        ------
        PluginFailedError
            If the plug-in returns neither a number nor None, or NaN.
        """
        found = self._inner.quantum(job)
        return None if found is None else self._number("quantum", found)

    def max_wait(self, job: Job) -> float:
        """Return the checked wait after which a job is overdue.

        Parameters
        ----------
        job : Job
            A waiting job.

        Returns
        -------
        float
            In seconds.

        Raises
        ------
        PluginFailedError
            If the plug-in returns no number, or NaN.
        """
        return self._number("max_wait", self._inner.max_wait(job))

    def _number(self, method: str, found: object) -> float:
        if not isinstance(found, numbers.Real) or math.isnan(found):
            raise self._wrong(method, found, "a number")
        return float(found)

    def _wrong(self, method: str, found: object, expected: str) -> PluginFailedError:
        return PluginFailedError(
            f"the policy {self._name} returned {shown(found)} from {method}, which must be {expected}. This is an "
            "error of the plug-in, not of Blast: correct it there"
        )


class CheckedPhases:
    """A method plug-in whose phases are checked."""

    def __init__(self, name: str, inner: MethodFunction) -> None:
        self._name = name
        self._inner = inner

    def __call__(self, world: World, multicast: Multicast) -> Sequence[Phase]:
        """Return the checked phases of a multicast.

        Parameters
        ----------
        world : World
            The network and the random numbers of the run.
        multicast : Multicast
            The sender, the receivers and the data.

        Returns
        -------
        sequence of Phase
            As the plug-in returned them.

        Raises
        ------
        PluginFailedError
            If the plug-in returns no sequence of phases.
        """
        found = self._inner(world, multicast)
        if not isinstance(found, Sequence) or not all(isinstance(phase, Phase) for phase in found):
            raise PluginFailedError(
                f"the method {self._name} returned {shown(found)}, which must be a list of phases. This is an error of "
                "the plug-in, not of Blast: correct it there"
            )
        return found
