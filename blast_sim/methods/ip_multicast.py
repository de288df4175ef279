"""IP multicast on a separate packet network with 10 Gbit/s a rack (Blast, section VI-B), as its lower bound.

The switches of that network duplicate packets, so that every link carries the data once and groups share links. The
paper names group membership, tree building, congestion and flow control as what makes it slower than Blast, and gives
no figure for them. Here `set_up` stands for the first two; of the last two there is only the network's rate, which may
be set lower: no loss, no repair, no time in which a sender finds its rate.
"""

from __future__ import annotations

from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World


def ip_multicast(world: World, multicast: Multicast, set_up: float = 0.0) -> list[Phase]:
    """Return one phase: a flow over the sender's and receivers' links and the tree between their racks."""
    rack = world.network.rack_of(multicast.sender)
    others = [other for other in world.by_rack(multicast.receivers) if other != rack]
    tree = world.network.packet_multicast(rack, others) if others else []
    paths = world.network.session(multicast.sender, multicast.receivers, tree)
    return [Phase(paths, multicast.bits, delay=set_up)]
