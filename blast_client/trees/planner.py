"""Who plans trees for us. The data plane and its client know no algorithms: a planner is an entry point of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from blast_transport.base.errors import WrongInputError, sentence
from blast_transport.base.extras import how_to_install

GROUP = "blast.tree_planners"
"""Of entry points: (path of a network file) -> a `TreePlanner`."""


class PlannedTrees(Protocol):
    """Trees as (rate, for each host that it enters the one it receives from), and the `rate` of all together."""

    @property
    def rate(self) -> float:
        """Bits/s of data."""

    @property
    def trees(self) -> Sequence[tuple[float, Mapping[str, str]]]:
        """Together they carry everything."""


class Suspect(Protocol):
    """A path that was found slow, and may have recovered."""

    @property
    def sender(self) -> str:
        """Where it begins."""

    @property
    def receiver(self) -> str:
        """Where it ends."""


class TreePlanner(Protocol):
    """Plans for one network. Hosts are names, rates bits/s of data, seconds of one clock.

    Raises ValueError for what nobody can plan, and RuntimeError where planning failed; one sentence each.
    """

    @property
    def root(self) -> str:
        """The host that sends."""

    def plan(self, receivers: Iterable[str]) -> PlannedTrees:
        """The best trees to these, which are used from now on."""

    def chain_rate(self, order: Iterable[str]) -> float:
        """What a pipeline in this order reaches."""

    def see(
        self, flows: Iterable[tuple[str, str, float, float, bool]], broken: Iterable[tuple[str, str]], now: float
    ) -> None:
        """Take flows, as (from, to, rate, planned rate, whether the network took less), and dead paths."""

    def better(self) -> PlannedTrees | None:
        """Trees that are worth a change, which are used from now on; None: there are none."""

    def suspect(self, now: float) -> Suspect | None:
        """The next path to be probed; None: nothing is due."""

    def probed(self, suspect: Suspect, rate: float) -> None:
        """So much went over it besides what was under way."""


def planner_of(network: Path) -> TreePlanner:
    """The planner for the network in this file. Raises WrongInputError."""
    try:
        for found in entry_points(group=GROUP):
            make: Callable[[Path], TreePlanner] = found.load()
            return make(network)
    except ImportError as error:
        raise WrongInputError(f"trees cannot be planned here ({error}): {how_to_install('sim')}") from error
    except OSError as error:
        raise WrongInputError(f"cannot read {network}: {sentence(error)}") from error
    except ValueError as error:
        raise WrongInputError(f"{network}: {error}") from error
    raise WrongInputError(f"nobody plans trees here: {how_to_install('sim')}")
