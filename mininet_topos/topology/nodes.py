"""The lab's nodes and links as Mininet classes: hosts, ToRs, the packet core, and cables between them.

Numbers and wiring are in `topology.py`. Under `mn --custom` these classes run on the system's own Python: standard
library and Mininet only.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.mininet_import import Host, Intf, Link, Node, OVSSwitch, RemoteController, Switch
from mininet_topos.kernel.names import BRIDGE_KEY, MARK
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.kernel.netdev import batch, query, run, silence_ipv6, veth_pair
from mininet_topos.topology.plan import SUBNET_BITS

_UNSUPPORTED = ("loss", "delay", "jitter", "max_queue_size")


class BlastIntf(Intf):  # type: ignore[misc]
    """An interface that is made complete by its link and its node, not by one shell command per property.

    `shaping` is a list of `tc -batch` lines that its node runs when the interface is in its final place.
    """

    shaping: Sequence[str] = ()

    def config(self, shaping: Sequence[str] = (), **_params: object) -> dict[str, object]:
        """Keep the shaping for the node."""
        self.shaping = shaping
        return {}


class BlastLink(Link):  # type: ignore[misc]
    """A cable: one veth pair, made with both ends in place. Options: `mtu`, and `shaping` for each end.

    Raises `PlanError` for loss, delay, jitter and max_queue_size: they need netem, and where the kernel has none
    Mininet would print a line and bring the link up without them.
    """

    def __init__(self, node1: Node, node2: Node, mtu: int = 1500, **params: Any) -> None:
        asked = {*params, *(params.get("params1") or {}), *(params.get("params2") or {})}
        refused = sorted(asked.intersection(_UNSUPPORTED))
        if refused:
            raise PlanError(f"the lab's links have no {', '.join(refused)}: shape them by rate instead")
        self._mtu = mtu
        params["intf"] = BlastIntf
        super().__init__(node1, node2, **params)

    def makeIntfPair(  # noqa: N802, PLR0913, PLR0917 - Mininet's signature
        self,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Node | None = None,
        node2: Node | None = None,
        deleteIntfs: bool = True,  # noqa: N803
    ) -> None:
        """Make the veth pair, both ends where they belong. Their nodes bring them up."""
        ends = _end_options(node1, addr1), _end_options(node2, addr2)
        batch("ip", [veth_pair(intfname1, intfname2, self._mtu, *ends)])

    def stop(self) -> None:
        """Do nothing: every link has an end in a namespace, and disappears with it."""


def _end_options(node: Node, address: str | None) -> str:
    mac = f"address {address}" if address else ""
    return f"{mac} netns {node.pid}" if node.inNamespace else mac


class _Marked:
    """A node whose processes carry the lab's mark, and in whose own namespace IPv6 is silent."""

    inNamespace: bool  # noqa: N815 - Mininet's name
    params: dict[str, Any]
    pid: int

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        """Start the shell that holds the node."""
        super().startShell(mnopts)  # type: ignore[misc]
        if self.inNamespace:
            run_in_network_of(self.pid, _silence_namespace)

    def _popen(self, cmd: list[str], env: Mapping[str, str] | None = None, **params: object) -> subprocess.Popen[bytes]:
        marked = {**(env or os.environ), MARK: self.params["lab"]}
        process: subprocess.Popen[bytes] = super()._popen(cmd, env=marked, **params)  # type: ignore[misc]
        return process


def _silence_namespace() -> None:
    silence_ipv6("all")
    silence_ipv6("default")


class BlastHost(_Marked, Host):  # type: ignore[misc]
    """A server with one interface on the data network, and maybe one on a static tree, ready for multicast."""

    def config(self, ip: str | None = None, light_ip: str | None = None, **_params: object) -> dict[str, object]:
        """Give the interfaces their addresses, routes, offloads and rates in one go. Raises `HostError`."""
        interface = self.defaultIntf()
        interface.ip, interface.prefixLen = ip, SUBNET_BITS
        ip_lines = [
            "link set lo up",
            f"link set {interface} up",
            f"addr add {ip}/{SUBNET_BITS} brd + dev {interface}",
            f"route add 224.0.0.0/4 dev {interface}",
        ]
        cards = [each for each in self.intfList() if each is not interface]
        ip_lines += [f"link set {card} up" for card in cards]
        ip_lines += [f"addr add {light_ip}/32 dev {card}" for card in cards if light_ip is not None]
        # A ToR on the user-space datapath drops packets whose checksum the sender left to the hardware.
        script = "".join(f"ethtool -K {each} tx off >/dev/null\n" for each in (interface, *cards))
        script += "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done\n"
        batch("ip", ip_lines, self.pid)
        run(["sh", "-e", "-s"], script, self.pid)
        batch("tc", [line for each in (interface, *cards) for line in each.shaping], self.pid)
        return {}


class ToR(_Marked, OVSSwitch):  # type: ignore[misc]
    """A top-of-rack switch: an Open vSwitch bridge in user space that speaks OpenFlow 1.3 and forwards only by rules.

    `bridge` is its name in Open vSwitch, `rules` the packet network's own rules (lines for `ovs-ofctl add-flows`).
    """

    def __init__(self, name: str, bridge: str, rules: Sequence[str] = (), **params: object) -> None:
        self._bridge, self._rules = bridge, rules
        self._transaction: list[str] = []
        params.pop("batch", None)
        super().__init__(name, datapath="user", failMode="secure", protocols="OpenFlow13", **params)

    def __str__(self) -> str:
        """Return the bridge's name, by which Mininet's own commands address it."""
        return self._bridge

    @classmethod
    def setup(cls) -> None:
        """Check that Open vSwitch answers. Raises `HostError`."""
        query(["ovs-vsctl", "--timeout=10", "get", "Open_vSwitch", ".", "ovs_version"])

    @classmethod
    def isOldOVS(cls) -> bool:  # noqa: N802 - Mininet's name
        """Return false: a lab needs OpenFlow 1.3."""
        return False

    def start(self, controllers: Sequence[RemoteController]) -> None:
        """Decide the bridge's part of the transaction that `batchStartup` commits."""
        targets = {f"@{self._bridge}{c.name}": f"{c.protocol}:{c.IP()}:{c.port}" for c in controllers}
        # The controllers are set where the bridge is made: adding the first one later would wipe its rules.
        creations = [
            argument
            for key, target in targets.items()
            for argument in ("--", f"--id={key}", "create", "Controller", f'target="{target}"', "max_backoff=1000")
        ]
        bridge = [
            "datapath_type=netdev",
            "fail_mode=secure",
            "protocols=OpenFlow13",
            f"controller=[{','.join(targets)}]",
            f"other_config:datapath-id={self.dpid}",
            "other_config:disable-in-band=true",
            f"other_config:dp-desc={self.name}",
            f"external_ids:{BRIDGE_KEY}={self.params['lab']}",
        ]
        ports = [
            argument
            for interface in self._data_interfaces()
            for argument in (
                *("--", "add-port", self._bridge, interface.name),
                *("--", "set", "Interface", interface.name, f"ofport_request={self.ports[interface]}"),
            )
        ]
        add = ["--", "add-br", self._bridge, "--", "set", "Bridge", self._bridge, *bridge]
        self._transaction = [*creations, *add, *ports]

    @classmethod
    def batchStartup(cls, switches: Sequence[ToR], run: object = None) -> Sequence[ToR]:  # noqa: N802
        """Make all bridges in one transaction, shape their ports, install the packet network's rules."""
        commit = [argument for switch in switches for argument in switch._transaction]
        query(["ovs-vsctl", "--timeout=60", *commit])
        interfaces = [interface for switch in switches for interface in switch._data_interfaces()]
        for interface in interfaces:
            silence_ipv6(interface.name)
        # Only now: Open vSwitch clears the queueing disciplines of an interface that it takes.
        batch("tc", [line for interface in interfaces for line in interface.shaping])
        batch("ip", [f"link set {interface.name} up" for interface in interfaces])
        for switch in switches:
            query(["ovs-ofctl", "-O", "OpenFlow13", "add-flows", str(switch), "-"], "\n".join(switch._rules))
        return switches

    def reboot(self, controllers: Sequence[RemoteController]) -> None:
        """Recreate the bridge with the packet network's rules only. Raises `HostError`."""
        query(["ovs-vsctl", "--timeout=60", "--if-exists", "del-br", self._bridge])
        self.start(controllers)
        self.batchStartup([self])

    def connected(self) -> bool:
        """Return true if the bridge has its controller, or needs none."""
        return not self.controllerUUIDs() or bool(super().connected())

    def _data_interfaces(self) -> list[BlastIntf]:
        return [interface for interface in self.intfList() if isinstance(interface, BlastIntf)]


class NamespaceSwitch(_Marked, Switch):  # type: ignore[misc]
    """A switch that consists of netdevs in a namespace of its own."""

    controlIntf = None  # noqa: N815 - Mininet's name

    def __init__(self, name: str, **params: object) -> None:
        # Mininet derives a datapath id from the name; a switch without OpenFlow has none.
        super().__init__(name, dpid="0", **{**params, "inNamespace": True})

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's signature
        """End the namespace, and every netdev with it."""
        self.terminate()


class PacketCore(NamespaceSwitch):
    """The electrical packet core: one kernel bridge that all racks' uplinks are on."""

    def __init__(self, name: str, bridge: str, **params: object) -> None:
        self._bridge = bridge
        super().__init__(name, **params)

    def start(self, controllers: Sequence[object]) -> None:
        """Make the bridge, put the uplinks on it and shape them. Raises `HostError`."""
        interfaces = self.intfList()
        make = f"link add {self._bridge} up type bridge stp_state 0 mcast_snooping 0"
        batch("ip", [make, *(f"link set {i} up master {self._bridge}" for i in interfaces)], self.pid)
        batch("tc", [line for i in interfaces for line in i.shaping], self.pid)

    def connected(self) -> bool:
        """Return true if every uplink forwards.

        The kernel takes up to a second to notice that the other end of an uplink is up.
        """
        states = query(["bridge", "link", "show"], namespace_pid=self.pid)
        return states.count("state forwarding") == len(self.intfList())


class ControllerTarget(RemoteController):  # type: ignore[misc]
    """Where ToRs look for their controller, whether or not one listens there yet."""

    def checkListening(self) -> None:  # noqa: N802 - Mininet's name
        """Do nothing: ToRs keep trying to connect."""
