"""Plans the trees of one transfer, and replans them as the network changes.

The sender does not depend on algorithms, and finds this module by its entry point (group `blast.tree_planners`). Hosts
are names, rates are bits/s of data, and seconds are of one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from algorithms.balanced.best_trees import without_thin
from algorithms.balanced.estimate import EstimatedFlow, NetworkEstimate, NetworkPart, NetworkPlace
from algorithms.balanced.exact import exact
from algorithms.balanced.network import InvalidNetworkError, Network
from algorithms.balanced.plan import NO_HOST, MulticastPlan, edges, kept_within, max_rate
from blast_sim.base.wrong_input import InputError
from blast_sim.trees.network_file import read_network

GAIN = 1.1
"""Times the rate that the present trees reach which others must reach to be worth the change."""

Parents = Mapping[str, str]
"""For each host that a tree enters, the one that it receives from."""

Measured = tuple[str, str, float, float, bool]
"""(from, to, rate, planned rate, whether the network took less although more lay ready)."""


@dataclass(frozen=True, slots=True)
class PlannedTrees:
    """Trees as (rate, parents), and the total rate at which every receiver gets the data."""

    rate: float
    trees: tuple[tuple[float, Parents], ...]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A slow place, to be probed by a stream from `sender` to `receiver`."""

    sender: str
    receiver: str
    place: NetworkPlace


class NetworkTreePlanner:
    """A planner of trees in the network of a file, from its root. Raises InputError, OSError."""

    def __init__(self, path: Path) -> None:
        self._estimate = NetworkEstimate(read_network(path))
        self._hosts = self._estimate.network.hosts
        self._places = {name: place for place, name in enumerate(self._hosts)}
        self._part = self._estimate.network
        self._plan: MulticastPlan | None = None
        self._flows: Sequence[EstimatedFlow] = ()

    @property
    def root(self) -> str:
        """The host that sends."""
        return self._hosts[self._estimate.network.root]

    def plan(self, receivers: Iterable[str]) -> PlannedTrees:
        """Plan the best trees to these receivers, which are used from now on. Raises InputError, SolverError."""
        self._part = self._among(receivers)
        return self._use(_best(self._part))

    def chain_rate(self, order: Iterable[str]) -> float:
        """Return the rate of a pipeline in this order. Raises InputError."""
        network, parents, before = self._estimate.network, [NO_HOST] * len(self._hosts), self.root
        for name in order:
            parents[self._place(name)] = self._place(before)
            before = name
        return max_rate(network, tuple(parents))

    def see(self, flows: Iterable[Measured], broken: Iterable[tuple[str, str]], now: float) -> None:
        """Record measured flows, and paths over which connections failed. Raises InputError for an unknown host."""
        self._flows = [EstimatedFlow(self._place(flow[0]), self._place(flow[1]), *flow[2:]) for flow in flows]
        self._estimate.see(self._flows, now)
        for sender, receiver in broken:
            self._estimate.broken(self._place(sender), self._place(receiver), now)

    def better(self) -> PlannedTrees | None:
        """Return trees that are worth a change, which are used from now on; None if there are none.

        Raises InputError if a receiver cannot be reached any more, SolverError.
        """
        if self._plan is None:
            return None
        part = self._among(self._part.hosts[host] for host in self._part.receivers)
        plan, present = _best(part), kept_within(part, self._plan)
        # Data assigned to a stopped tree arrives by no other tree.
        if plan.rate < GAIN * present.rate and all(present.rates):
            return None
        self._part = part
        return self._use(plan)

    def suspect(self, now: float) -> Suspect | None:
        """Return the next place to probe; None if no probe is due."""
        place = self._estimate.suspect(now)
        return None if place is None else Suspect(self._hosts[place.sender], self._hosts[place.receiver], place)

    def probed(self, suspect: Suspect, rate: float) -> None:
        """Record the rate of a probe, in addition to other traffic there."""
        self._estimate.probed(
            suspect.place, rate + sum(flow.rate for flow in self._flows if _uses(flow, suspect.place))
        )

    def _use(self, plan: MulticastPlan) -> PlannedTrees:
        self._plan, hosts = plan, self._part.hosts
        trees = (
            (rate, {hosts[receiver]: hosts[sender] for sender, receiver in edges(tree)})
            for tree, rate in zip(plan.trees, plan.rates, strict=True)
        )
        return PlannedTrees(plan.rate, tuple(trees))

    def _among(self, receivers: Iterable[str]) -> Network:
        """Return the network of the root and these hosts alone: no other host forwards."""
        whole = self._estimate.network
        kept = [whole.root, *(self._place(name) for name in receivers)]
        try:
            return Network(
                tuple(whole.hosts[host] for host in kept),
                0,
                tuple(range(1, len(kept))),
                whole.rates[np.ix_(kept, kept)],
                whole.out[kept],
                whole.into[kept],
            )
        except InvalidNetworkError as error:
            raise InputError(str(error)) from None

    def _place(self, name: str) -> int:
        try:
            return self._places[name]
        except KeyError:
            raise InputError(f"the network file knows no host {name!r}: it has {', '.join(self._hosts)}") from None


def _best(network: Network) -> MulticastPlan:
    """Return the optimum without its thin trees. Raises SolverError."""
    return without_thin(network, exact(network))


def _uses(flow: EstimatedFlow, place: NetworkPlace) -> bool:
    match place.part:
        case NetworkPart.PATH:
            return (flow.sender, flow.receiver) == (place.sender, place.receiver)
        case NetworkPart.OUT:
            return flow.sender == place.sender
        case NetworkPart.INTO:
            return flow.receiver == place.receiver
