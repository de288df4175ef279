"""Clusters: each is one host of the network to plan for, and all its hosts take part in the transfer.

Section 3.2 of the paper. Within a cluster the network is fast, so a chain brings all data to all hosts of the root's
cluster; each of them sends a part over the wide area through its own interface; and every host that receives from there
starts a chain through its own cluster.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan, edges


@dataclass(frozen=True, slots=True)
class ClusterHost:
    """A host of a cluster, and the capacity of its wide-area interface for sending (`out`) and receiving (`into`)."""

    name: str
    out: float
    into: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts that share an access link, and its capacity in each direction (infinite: it is never the limit)."""

    name: str
    members: tuple[ClusterHost, ...]
    out: float = math.inf
    into: float = math.inf

    @property
    def sends(self) -> float:
        """The rate that the cluster can send: the sum of its interfaces or the access link, whichever is less."""
        return min(sum(member.out for member in self.members), self.out)

    @property
    def receives(self) -> float:
        """The rate that the cluster can receive."""
        return min(sum(member.into for member in self.members), self.into)


@dataclass(frozen=True, slots=True)
class WideAreaStream:
    """A wide-area connection: `sender` (a host) sends `receiver` the data of a tree from `first` to `last`.

    `tree` is its place in the plan, `first` and `last` are shares of that tree's data, `rate` is in the plan's unit.
    """

    tree: int
    sender: str
    receiver: str
    first: float
    last: float
    rate: float


@dataclass(frozen=True, slots=True)
class ClusterSteps:
    """The three steps: a chain from the root, streams over the wide area, a chain from each host that receives."""

    root_chain: tuple[str, ...]
    streams: tuple[WideAreaStream, ...]
    chains: Mapping[str, tuple[str, ...]]


def as_hosts(clusters: Sequence[Cluster], root: str, links: Iterable[tuple[str, str, float]]) -> NamedNetwork:
    """Return the network whose hosts are the clusters; `root` and `links` use their names."""
    return NamedNetwork(
        [each.name for each in clusters],
        root,
        links,
        out={each.name: each.sends for each in clusters if each.sends < math.inf},
        into={each.name: each.receives for each in clusters if each.receives < math.inf},
    )


def steps(clusters: Sequence[Cluster], root_host: str, network: Network, plan: MulticastPlan) -> ClusterSteps:
    """Return the steps by which the hosts carry out a plan for `as_hosts`, whose data is at `root_host`."""
    by_name = {each.name: each for each in clusters}
    streams = tuple(
        stream
        for number, (tree, rate) in enumerate(zip(plan.trees, plan.rates, strict=True))
        for sender, receiver in edges(tree)
        for stream in _streams(number, by_name[network.hosts[sender]], by_name[network.hosts[receiver]], rate)
    )
    home = by_name[network.hosts[network.root]]
    cluster_of = {member.name: each for each in clusters for member in each.members}
    heads = dict.fromkeys(stream.receiver for stream in streams)
    return ClusterSteps(_chain(home, root_host), streams, {head: _chain(cluster_of[head], head) for head in heads})


@dataclass(frozen=True, slots=True)
class HostTree:
    """A tree over single hosts: maps each receiving host to its parent; the rate is in the plan's unit."""

    rate: float
    parents: Mapping[str, str]


def host_trees(
    clusters: Sequence[Cluster], root_host: str, network: Network, plan: MulticastPlan
) -> tuple[HostTree, ...]:
    """Return the three steps as trees over all hosts: one for each part of a tree's data that takes the same path."""
    carried = steps(clusters, root_host, network, plan)
    of_tree: dict[int, list[WideAreaStream]] = defaultdict(list)
    for stream in carried.streams:
        of_tree[stream.tree].append(stream)
    return tuple(
        HostTree(plan.rates[tree] * (last - first), _parents(carried, streams, (first + last) / 2))
        for tree, streams in of_tree.items()
        for first, last in pairwise(sorted({end for stream in streams for end in (stream.first, stream.last)}))
    )


def _parents(carried: ClusterSteps, streams: Iterable[WideAreaStream], share: float) -> dict[str, str]:
    """Return the parent of each host for the data at this share of a tree."""
    used = [stream for stream in streams if stream.first < share < stream.last]
    chains = [carried.root_chain, *(carried.chains[stream.receiver] for stream in used)]
    local = {receiver: sender for chain in chains for sender, receiver in pairwise(chain)}
    return local | {stream.receiver: stream.sender for stream in used}


def _streams(tree: int, sender: Cluster, receiver: Cluster, rate: float) -> Iterator[WideAreaStream]:
    """Yield streams in which every interface carries its share on both sides, so that none exceeds its capacity."""
    sending = _ends(member.out for member in sender.members)
    receiving = _ends(member.into for member in receiver.members)
    for first, last in pairwise(sorted({0.0, *sending, *receiving})):
        middle = (first + last) / 2
        yield WideAreaStream(
            tree,
            sender.members[int(np.searchsorted(sending, middle))].name,
            receiver.members[int(np.searchsorted(receiving, middle))].name,
            first,
            last,
            rate * (last - first),
        )


def _ends(limits: Iterable[float]) -> list[float]:
    """Return the ends of the shares when a whole is split in proportion to these limits; the last is 1."""
    weights = np.array(list(limits))
    if np.isinf(weights).any():
        weights = np.isinf(weights).astype(np.float64)
    ends = np.cumsum(weights) / weights.sum()
    # Sums in another order differ in the last bits, which would create streams of almost no data.
    return np.round(ends, 12).tolist()  # type: ignore[no-any-return]


def _chain(cluster: Cluster, head: str) -> tuple[str, ...]:
    return (head, *(member.name for member in cluster.members if member.name != head))
