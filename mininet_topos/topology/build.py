"""A plan as a Mininet topology: the same for `blast lab` and for `mn --custom`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mininet_topos.kernel.mininet_import import Topo
from mininet_topos.kernel.names import Names
from mininet_topos.kernel.shaping import access_shaping, host_shaping, light_shaping, uplink_shaping
from mininet_topos.topology.fixed_splitter import FixedSplitter
from mininet_topos.topology.nodes import BlastHost, BlastLink, PacketCore, ToR
from mininet_topos.topology.optical_node import OpticalSwitch
from mininet_topos.topology.packet_rules import forwarding_rules
from mininet_topos.topology.plan import OPTICAL_SWITCH, HostPlan, LabPlan, OpticalPortPlan, RackPlan
from mininet_topos.topology.static_tree import StaticEnd, StaticTreePlan, taken_as_from
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, KINDS, SwitchKind

CORE = "core"


@dataclass(frozen=True)
class Build:
    """One lab of a plan: its id (by its names), the kind of its optical switch, and where its agent listens and logs.

    Without an address, the switch has no agent.
    """

    names: Names
    agent: str | None
    log: Path
    switch: SwitchKind = KINDS[DEFAULT_KIND]


def tor_name(datapath: int) -> str:
    """Return the name of a ToR at the Mininet prompt."""
    return f"t{datapath}"


class BlastTopo(Topo):  # type: ignore[misc]
    """Racks, the packet core and the optical switch of a plan."""

    def build(self, plan: LabPlan, build: Build) -> None:
        """Add every node and link of the plan."""
        self._plan, self._names = plan, build.names
        lab = build.names.lab
        self.addSwitch(CORE, cls=PacketCore, lab=lab, bridge=build.names.core_bridge())
        self.addSwitch(
            OPTICAL_SWITCH,
            cls=OpticalSwitch,
            lab=lab,
            ports=plan.ocs_ports,
            splitters=plan.splitter_plans,
            mtu=plan.mtu,
            kind=build.switch,
            agent=build.agent,
            log=build.log,
        )
        for datapath, racks in plan.datapaths.items():
            self.addSwitch(
                tor_name(datapath),
                cls=ToR,
                lab=lab,
                dpid=f"{datapath:016x}",
                bridge=build.names.bridge(datapath),
                rules=forwarding_rules(racks),
            )
            for rack in racks:
                self._add_rack(rack, lab)
        for tree in plan.static_tree_plans:
            self._add_static_tree(tree, lab)

    def _add_rack(self, rack: RackPlan, lab: str) -> None:
        senders = {tree.root.name: tree.root.light_ip for tree in self._plan.static_tree_plans}
        for host in rack.hosts:
            self.addHost(host.name, cls=BlastHost, lab=lab, ip=host.ip, light_ip=senders.get(host.name))
            self._add_access_link(rack, host)
        self._add_uplink(rack)
        for port in rack.optical_ports:
            self._add_fiber(rack, port)

    def _add_access_link(self, rack: RackPlan, host: HostPlan) -> None:
        at_tor = self._names.access_at_tor(rack.number, host.number)
        at_host = self._names.access_at_host(rack.number, host.number)
        rate, mtu = self._plan.access_rate_mbps, self._plan.mtu
        self.addLink(
            tor_name(rack.datapath),
            host.name,
            cls=BlastLink,
            mtu=mtu,
            port1=host.port,
            port2=0,
            intfName1=at_tor,
            intfName2=at_host,
            addr2=host.mac,
            params1={"shaping": access_shaping(at_tor, rate, mtu)},
            params2={"shaping": host_shaping(at_host, rate, mtu)},
        )

    def _add_uplink(self, rack: RackPlan) -> None:
        at_tor, at_core = self._names.uplink_at_tor(rack.number), self._names.uplink_at_core(rack.number)
        rate, mtu = self._plan.uplink_rate_mbps, self._plan.mtu
        self.addLink(
            tor_name(rack.datapath),
            CORE,
            cls=BlastLink,
            mtu=mtu,
            port1=rack.uplink_port,
            port2=rack.number,
            intfName1=at_tor,
            intfName2=at_core,
            params1={"shaping": uplink_shaping(at_tor, rate, mtu)},
            params2={"shaping": uplink_shaping(at_core, rate, mtu)},
        )

    def _add_fiber(self, rack: RackPlan, port: OpticalPortPlan) -> None:
        """Add a transmit and a receive fiber; only the ToR's transmitter has a rate, glass has none."""
        at_tor = self._names.optical_at_tor(rack.number, port.number)
        self.addLink(
            tor_name(rack.datapath),
            OPTICAL_SWITCH,
            cls=BlastLink,
            mtu=self._plan.mtu,
            port1=port.port,
            port2=port.ocs,
            intfName1=at_tor,
            intfName2=self._names.ocs_port(port.ocs),
            params1={"shaping": light_shaping(at_tor, self._plan.light_rate_mbps, self._plan.mtu)},
        )

    def _add_static_tree(self, tree: StaticTreePlan, lab: str) -> None:
        """Add a splitter and a fiber to each end, of which only the root's transmitter has a rate."""
        fibers = [self._names.static_fiber(tree.number, end.fiber) for end in tree.ends]
        self.addSwitch(tree.name, cls=FixedSplitter, lab=lab, feed=fibers[0], outputs=fibers[1:])
        for end, fiber in zip(tree.ends, fibers, strict=True):
            node, port, card = self._static_end(tree, end)
            rules = light_shaping(card, self._plan.light_rate_mbps, self._plan.mtu) if end is tree.root else []
            if end is not tree.root and end.host is not None:
                rules = taken_as_from(card, self._names.access_at_host(end.rack, end.host))
            self.addLink(
                node,
                tree.name,
                cls=BlastLink,
                mtu=self._plan.mtu,
                port1=port,
                port2=end.fiber + 1,
                intfName1=card,
                intfName2=fiber,
                params1={"shaping": rules},
            )

    def _static_end(self, tree: StaticTreePlan, end: StaticEnd) -> tuple[str, int, str]:
        """Return the node, the number of its port and the netdev there."""
        if end.host is not None:
            return end.name, 1, self._names.static_at_host(end.rack, end.host)
        rack = self._plan.rack_plans[end.rack - 1]
        return tor_name(rack.datapath), rack.base + tree.port, self._names.static_at_tor(end.rack, tree.number)
