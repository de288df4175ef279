"""The interface of planners of trees. A planner is an entry point, so that the client does not depend on algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from blast_base.extras import how_to_install
from blast_transport.base.errors import WrongInputError, sentence

GROUP = "blast.tree_planners"
"""Group of entry points: functions that take the path of a network file and return a `TreePlanner`."""


class PlannedTrees(Protocol):
    """Planned trees, each as (rate, parent of each host), and their total `rate`."""

    @property
    def rate(self) -> float:
        """Total rate in bits/s of data."""

    @property
    def trees(self) -> Sequence[tuple[float, Mapping[str, str]]]:
        """The trees, which carry disjoint parts of the data."""


class Suspect(Protocol):
    """A path that was slow and may have recovered."""

    @property
    def sender(self) -> str:
        """First host of the path."""

    @property
    def receiver(self) -> str:
        """Last host of the path."""


class TreePlanner(Protocol):
    """A planner for one network. Hosts are names, rates bits/s of data, times seconds of one clock.

    Raises ValueError for receivers that no tree reaches, and RuntimeError if planning failed.
    """

    @property
    def root(self) -> str:
        """The host that sends."""

    def plan(self, receivers: Iterable[str]) -> PlannedTrees:
        """Return the best trees to receivers, which are in use from now on.

        Parameters
        ----------
        receivers : Iterable[str]
            The hosts that receive.

        Returns
        -------
        PlannedTrees
            Trees that carry disjoint parts of the data.

        Raises
        ------
        ValueError
            If a receiver is not in the network, or no tree reaches it.
        RuntimeError
            If planning fails.
        """

    def chain_rate(self, order: Iterable[str]) -> float:
        """Return the rate of a pipeline.

        Parameters
        ----------
        order : Iterable[str]
            The receivers in the order of the pipeline.

        Returns
        -------
        float
            Bits of data per second.

        Raises
        ------
        ValueError
            If a receiver is not in the network.
        """

    def see(
        self, flows: Iterable[tuple[str, str, float, float, bool]], broken: Iterable[tuple[str, str]], now: float
    ) -> None:
        """Record the measured rates of flows, and dead paths.

        Parameters
        ----------
        flows : Iterable[tuple[str, str, float, float, bool]]
            From, to, measured rate, planned rate, and whether the network was the bottleneck.
        broken : Iterable[tuple[str, str]]
            Paths (from, to) that carry no data.
        now : float
            The time of the measurement.

        Raises
        ------
        ValueError
            If a host is not in the network.
        """

    def better(self) -> PlannedTrees | None:
        """Return better trees than those in use, and use them from now on.

        Returns
        -------
        PlannedTrees or None
            None if no trees are enough better to be worth the change.

        Raises
        ------
        RuntimeError
            If planning fails.
        """

    def suspect(self, now: float) -> Suspect | None:
        """Return the next path to probe.

        Parameters
        ----------
        now : float
            The current time.

        Returns
        -------
        Suspect or None
            None if no probe is due.
        """

    def probed(self, suspect: Suspect, rate: float) -> None:
        """Record the result of a probe.

        Parameters
        ----------
        suspect : Suspect
            The path.
        rate : float
            Rate that the path carried in addition to its flows.
        """


def planner_of(network: Path) -> TreePlanner:
    """Return the planner for the network of a file. Raises WrongInputError."""
    try:
        for found in entry_points(group=GROUP):
            make: Callable[[Path], TreePlanner] = found.load()
            return make(network)
    except ImportError as error:
        raise WrongInputError(f"cannot plan trees ({error}): {how_to_install('sim')}") from error
    except OSError as error:
        raise WrongInputError(f"cannot read {network}: {sentence(error)}") from error
    except ValueError as error:
        raise WrongInputError(f"{network}: {error}") from error
    raise WrongInputError(f"no planner of trees is installed: {how_to_install('sim')}")
