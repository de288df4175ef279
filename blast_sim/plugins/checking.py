"""Checks of what plug-ins return: a wrong value is the plug-in's error, and not one far away in the simulator."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State
from blast_sim.base.wrong_input import PluginFailed, shown
from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World
from blast_sim.plugins.interface import MethodFunction


class CheckedPolicy(Policy):
    """A policy from outside the package, whose answers are numbers."""

    def __init__(self, name: str, inner: Policy) -> None:
        self._name = name
        self._inner = inner

    def key(self, job: Job, now: float, state: State) -> float:
        """As the policy has it."""
        return self._number("key", self._inner.key(job, now, state))

    def objective(self, job: Job, state: State) -> float:
        """As the policy has it."""
        return self._number("objective", self._inner.objective(job, state))

    def fewest_receivers(self, job: Job) -> int:
        """As the policy has it."""
        found = self._inner.fewest_receivers(job)
        if not isinstance(found, numbers.Integral):
            raise self._wrong("fewest_receivers", found, "a whole number")
        return int(found)

    def quantum(self, job: Job) -> float | None:
        """As the policy has it."""
        found = self._inner.quantum(job)
        return None if found is None else self._number("quantum", found)

    def max_wait(self, job: Job) -> float:
        """As the policy has it."""
        return self._number("max_wait", self._inner.max_wait(job))

    def _number(self, what: str, found: object) -> float:
        if not isinstance(found, numbers.Real) or math.isnan(found):
            raise self._wrong(what, found, "a number")
        return float(found)

    def _wrong(self, what: str, found: object, wanted: str) -> PluginFailed:
        return PluginFailed(
            f"the policy {self._name} returned {shown(found)} from {what}, which must be {wanted}. This is an error of "
            "the plug-in, not of Blast: correct it there"
        )


class CheckedPhases:
    """A method from outside the package, whose answers are phases."""

    def __init__(self, name: str, inner: MethodFunction) -> None:
        self._name = name
        self._inner = inner

    def __call__(self, world: World, multicast: Multicast) -> Sequence[Phase]:
        """As the method has it."""
        found = self._inner(world, multicast)
        if not isinstance(found, Sequence) or not all(isinstance(phase, Phase) for phase in found):
            raise PluginFailed(
                f"the method {self._name} returned {shown(found)}, which must be a list of phases. This is an error of "
                "the plug-in, not of Blast: correct it there"
            )
        return found
