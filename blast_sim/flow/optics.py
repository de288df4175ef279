"""The optical part of a simulated network: splitters on optical switches, delays, and all of it as a fabric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count

from blast_controller.core.model.fabric import Fabric, Host, OpticalPort, Rack, Splitter
from blast_controller.core.model.identifiers import DatapathId, SwitchId
from blast_sim.flow.network import RackNetwork

SWITCH = SwitchId("ocs")
FIRST_OPTICAL_PORT = 1000
"""OpenFlow number of a ToR's first optical port; those of its servers are below."""

SWITCH_SIZES = (320, 1100)
"""Ports of optical switches that exist: the one of the paper (Blast, section II-B), and the largest with mirrors."""

SWITCHING_SECONDS: Mapping[str, float] = {
    "section-vi": 0.025,
    "glimmerglass": 0.014172,
    "polatis": 0.025,
    "calient": 0.2,
}
"""From a command to light, by switch: the paper's simulation (whole reconfiguration) and its Table II; for Calient the
bulk command's limit; for Polatis nothing is published that we know of, so the paper's figure stands in."""

OPENFLOW_SECONDS = 0.008711
"""Insertion of the rules on a ToR (Blast, Table II); it runs beside the optical switch's command."""

WITHOUT_OPTICAL_SWITCH_SECONDS = 0.001747 + 0.008553 + OPENFLOW_SECONDS
"""Thrift, computation and rules (Blast, Table II): the cost of a request if the same controller configures packet
switches. The paper's 25 ms are the total with the optical switch in parallel to the rules.
"""


@dataclass(frozen=True, slots=True)
class OpticalResources:
    """The splitters and optical switches; with `directional` a port may send to one group and receive from another.

    Racks, in order, and splitters are shared evenly among `switches`; no light passes from one switch to another.
    """

    splitters: int
    fan_out: int = 4
    directional: bool = False
    switches: int = 1

    def switch_ports(self, racks: int, light_ports: int) -> int:
        """Return the ports of an optical switch, as the paper counts: one per ToR port, 1 + N per splitter."""
        splitters = -(-self.splitters // self.switches)
        return -(-racks // self.switches) * light_ports + splitters * (1 + self.fan_out)

    def fabric(self, network: RackNetwork, servers: Iterable[int]) -> Fabric:
        """Return the network as the core's fabric, with the servers that take part in multicasts as its hosts."""
        hosts = {host_name(server): _host(network, server) for server in servers}
        racks = {rack_name(rack): self._rack(network, rack) for rack in range(network.racks)}
        first = network.racks * network.light_ports + 1
        splitters = {
            f"s{n}": Splitter(
                f"s{n}",
                switch_name(n * self.switches // self.splitters),
                first + n,
                tuple(range(first + n * self.fan_out, first + (n + 1) * self.fan_out)),
            )
            for n in range(self.splitters)
        }
        return Fabric(racks, hosts, splitters, tuple(map(switch_name, range(self.switches))), network.light_rate)

    def _rack(self, network: RackNetwork, rack: int) -> Rack:
        switch = switch_name(rack * self.switches // network.racks)
        numbers = range(rack * network.light_ports + 1, (rack + 1) * network.light_ports + 1)
        ports = [
            OpticalPort(rack_name(rack), FIRST_OPTICAL_PORT + place, switch, number, number)
            for place, number in enumerate(numbers)
        ]
        if self.directional:
            ports = [side for port in ports for side in port.sides()]
        return Rack(rack_name(rack), DatapathId(rack + 1), tuple(ports))


def switches_for(racks: int) -> tuple[int, int]:
    """Return the number of optical switches, and the ports of each, for `racks` racks and a third as many splitters."""
    for switches, ports in chain(((1, size) for size in SWITCH_SIZES), ((n, SWITCH_SIZES[-1]) for n in count(2))):
        if OpticalResources(racks // 3, switches=switches).switch_ports(racks, 1) <= ports:
            return switches, ports
    raise AssertionError("there is no limit to the number of switches")


def switch_name(number: int) -> SwitchId:
    """Return the core's name of an optical switch."""
    return SwitchId(f"ocs{number + 1}") if number else SWITCH


def rack_name(rack: int) -> str:
    """Return the core's name of a rack."""
    return f"r{rack}"


def host_name(server: int) -> str:
    """Return the core's name of a server."""
    return f"h{server}"


def server_of(host: str) -> int:
    """Return the server with this name."""
    return int(host[1:])


def place_of(port: OpticalPort) -> tuple[int, int]:
    """Return the rack of an optical port, and its place among the rack's ports."""
    return int(port.rack[1:]), port.port - FIRST_OPTICAL_PORT


def _host(network: RackNetwork, server: int) -> Host:
    rack = network.rack_of(server)
    number = server + 1
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return Host(host_name(server), rack_name(rack), 1 + server - rack * network.servers_per_rack, address)
