"""A part of a request as the matching sees it: the racks that it joins, how many ends its tree has, what it is worth.

Blast, section III-C: a multicast group is a hyper-edge of racks. One within a single rack is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from algorithms.b_matching.residual import Group
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.requests import MulticastRequest


@dataclass(frozen=True, slots=True)
class HyperEdge:
    """A request as an edge of the paper's hypergraph of racks.

    `sender` is the rack that sends, `others` are the other racks in the order in which their hosts are named, `leaves`
    is the number of leaves of the tree, and `volume` the paper's weight: bytes times receivers.
    """

    sender: str
    others: tuple[str, ...]
    leaves: int
    volume: float


def hyper_edge(request: MulticastRequest, receivers: Sequence[str], fabric: Fabric, loop_leaf: bool) -> HyperEdge:
    """Return the hyper-edge of these receivers; without `others` if all are in the sender's rack."""
    sender = fabric.hosts[request.sender].rack
    others = other_racks(sender, receivers, fabric)
    return HyperEdge(sender, others, leaves_of(len(others), loop_leaf), float(request.bytes) * len(receivers))


def other_racks(sender: str, receivers: Iterable[str], fabric: Fabric) -> tuple[str, ...]:
    """Return the racks of these hosts without the sender's, each once, in the order in which their hosts are named."""
    return tuple(dict.fromkeys(rack for host in receivers if (rack := fabric.hosts[host].rack) != sender))


def leaves_of(racks: int, loop_leaf: bool) -> int:
    """Return the number of leaves of a tree to this number of racks, without the sender's.

    A single receiver is lit in both directions by one more cross-connect, without a splitter.
    """
    return racks + (1 if loop_leaf and racks > 1 else 0)


def group_of(request: MulticastRequest, receivers: Sequence[str], fabric: Fabric, loop_leaf: bool) -> Group | None:
    """Return the hyper-edge that these receivers of a request are; None when all are in the sender's rack."""
    edge = hyper_edge(request, receivers, fabric, loop_leaf)
    if not edge.others:
        return None
    ends = frozenset({fabric.root_end(edge.sender), *map(fabric.leaf_end, edge.others)})
    return Group(request.id, ends, edge.leaves, edge.volume, request.tenant)
