"""The packet network's own forwarding rules, which the lab installs as the operator of that network.

Under fail-mode secure an Open vSwitch forwards nothing by itself, and Blast handles only the groups it granted. So the
lab gives every ToR low-priority rules under a separate cookie: unicast to a host's port or to the rack's uplink,
broadcast to the rack's hosts and uplink. No rule names an optical port, neither as input nor as output, and no rule
matches a multicast address, so the table miss drops unknown multicast and frames from optical ports. Every rule names
its input port, which isolates racks on one shared datapath: their traffic takes the packet core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mininet_topos.topology.plan import RackPlan

COOKIE = 0x7061636B_65740000
"""The ASCII letters `packet`, and the rack's number in the low 16 bits. Blast's own cookies begin with 0xb1a5."""
COOKIE_MASK = 0xFFFFFFFF_FFFF0000

_TO_HOST, _BROADCAST, _TO_UPLINK = 300, 200, 100
_UNICAST = "00:00:00:00:00:00/01:00:00:00:00:00"
_EVERYONE = "ff:ff:ff:ff:ff:ff"


def forwarding_rules(racks: Iterable[RackPlan]) -> list[str]:
    """Return the rules of one datapath, as lines for `ovs-ofctl -O OpenFlow13 add-flows BRIDGE -`."""
    return [line for rack in racks for line in _rack_rules(rack)]


def _rack_rules(rack: RackPlan) -> Iterator[str]:
    cookie = f"cookie={COOKIE | rack.number:#x}"
    host_ports = [host.port for host in rack.hosts]
    for in_port in (*host_ports, rack.uplink_port):
        for host in rack.hosts:
            if host.port != in_port:
                yield f"{cookie},priority={_TO_HOST},in_port={in_port},dl_dst={host.mac},actions=output:{host.port}"
        others = ",".join(f"output:{port}" for port in (*host_ports, rack.uplink_port) if port != in_port)
        yield f"{cookie},priority={_BROADCAST},in_port={in_port},dl_dst={_EVERYONE},actions={others}"
    for in_port in host_ports:
        yield f"{cookie},priority={_TO_UPLINK},in_port={in_port},dl_dst={_UNICAST},actions=output:{rack.uplink_port}"
