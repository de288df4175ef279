"""IP multicast, whose switches duplicate packets, so that every link carries the data once and groups share links.

`packet_multicast` is the transport `multicast` on the network of the servers: its congestion control shares links with
unicast flows as TCP does, here exactly max-min fairly.

`ip_multicast` has a separate packet network with 10 Gbit/s a rack (Blast, section VI-B), as its lower bound. The paper
names group membership, tree building, congestion and flow control as what makes it slower than Blast, and gives
no figure for them. Here `set_up` stands for the first two; of the last two there is only the network's rate, which may
be set lower: no loss, no repair, no time in which a sender finds its rate.
"""

from __future__ import annotations

from collections.abc import Callable

from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World


def ip_multicast(world: World, multicast: Multicast, set_up: float = 0.0) -> list[Phase]:
    """Return one phase: a flow over the sender's and receivers' links and the tree between their racks."""
    return _phases(world, multicast, world.network.separate_tree, set_up)


def packet_multicast(world: World, multicast: Multicast, set_up: float = 0.0) -> list[Phase]:
    """Return one phase: a flow over the sender's and receivers' links and the uplinks of their racks."""
    return _phases(world, multicast, world.network.shared_tree, set_up)


def _phases(
    world: World, multicast: Multicast, tree: Callable[[int, list[int]], list[int]], delay: float
) -> list[Phase]:
    rack = world.network.rack_of(multicast.sender)
    others = [other for other in world.by_rack(multicast.receivers) if other != rack]
    paths = world.network.session(multicast.sender, multicast.receivers, tree(rack, others) if others else [])
    return [Phase(paths, multicast.bits, delay=delay)]
