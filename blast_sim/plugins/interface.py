"""The interface of plug-ins, version 1.

A plug-in declares the version that it was written for: `interface = 1`, in its class or in its module. A later version
of Blast that changes this interface gets another number, and rejects plug-ins of this one with a message.

A **policy** is a subclass of `Policy` whose constructor takes no arguments. Its `key` orders the waiting jobs:

    class NarrowestFirst(Policy):
        interface = 1

        def key(self, job: Job, now: float, state: State) -> float:
            return float(job.group.racks)

Its other methods have defaults that suit a preemptive policy that starves no job; `Dedicated` grants optical resources
to a whole group until its end. `Job` (algorithms/scheduling/job.py) and `State` (algorithms/scheduling/policy.py)
define the data that a policy can use.

A **method** is a `MethodFunction`, whose transfers are known at the start, or a `MethodClass`, which decides while the
simulation runs.

Results depend on a plug-in's source only: it must not use anything else, such as files, the time, or random numbers
that are not drawn from `World.dice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from algorithms.scheduling.policy import Policy
from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Done, Multicast, World

__all__ = ["INTERFACE_VERSION", "MethodClass", "MethodFunction", "Policy"]

INTERFACE_VERSION = 1
"""Incremented for an incompatible change of what plug-ins see."""


class MethodFunction(Protocol):
    """A multicast method whose transfers are known at the start."""

    def __call__(self, world: World, multicast: Multicast, /) -> Sequence[Phase]:
        """Return the transfers of a multicast as phases.

        Parameters
        ----------
        world : World
            The network, with `world.network.unicast(sources, targets)` and its other paths; random numbers of this run
            in `world.dice`.
        multicast : Multicast
            The sender and the receivers (numbers of servers), and the size of the data in bytes and in `bits`.

        Returns
        -------
        sequence of Phase
            Flows with a number of bits each. A phase begins `delay` seconds after the end of the phases that it names
            in `after`. The multicast is complete when all phases have ended.
        """


class MethodClass(Protocol):
    """A multicast method that decides while the simulation runs; one object serves all multicasts of a run.

    The constructor creates the method for an idle world.

    Parameters
    ----------
    world : World
        As for a `MethodFunction`; `world.simulation.start` starts flows, `world.simulation.clock.at` schedules a call.
    """

    def __init__(self, world: World, /) -> None:
        """Create the method for an idle world."""

    def send(self, multicast: Multicast, done: Done) -> None:
        """Start a multicast at the time of the call.

        Parameters
        ----------
        multicast : Multicast
            The sender, the receivers and the data.
        done : callable
            Called by the method, without arguments, when every receiver has all data.
        """
