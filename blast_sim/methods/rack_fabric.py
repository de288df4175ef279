"""Replication inside the fabric that joins all servers, at the rate measured by `blast sim fabric`.

The fabric replaces the packet network between racks: a transfer uses the links of servers and, between them, no link of
this simulator's other traffic.
"""

from __future__ import annotations

from blast_sim.fabric.replication import replication
from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World


def rack_fabric(world: World, multicast: Multicast, lossless: bool = False) -> list[Phase]:
    """Return one phase: a flow over the sender's and receivers' links.

    Raises ValueError for more racks than such a fabric has.
    """
    found = replication(len(world.by_rack(multicast.servers)), lossless)
    paths = world.network.session(multicast.sender, multicast.receivers, [])
    return [Phase(paths, multicast.bits, delay=found.seconds, rate_caps=found.share * world.network.server_rate)]
