"""The optical part of a simulated network: splitters on one optical switch, delays, and all of it as a fabric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blast_controller.core.model.fabric import Fabric, Host, OpticalPort, Rack, Splitter
from blast_controller.core.model.identifiers import DatapathId, SwitchId
from blast_sim.flow.network import Network

SWITCH = SwitchId("ocs")
FIRST_OPTICAL_PORT = 1000
"""OpenFlow number of a ToR's first optical port; those of its servers are below."""

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
"""Thrift, computation and rules (Blast, Table II): what a request costs if the same controller sets up packet switches.
The paper's 25 ms stand for the same with the optical switch beside the rules."""


@dataclass(frozen=True, slots=True)
class Optics:
    """So many splitters of so many `ways`; with `directional` a port may send to one group and receive from another."""

    splitters: int
    ways: int = 4
    directional: bool = False

    def switch_ports(self, network: Network) -> int:
        """How many ports the optical switch needs, as the paper counts: a port a ToR port, 1 + N a splitter."""
        return network.racks * network.light_ports + self.splitters * (1 + self.ways)

    def fabric(self, network: Network, servers: Iterable[int]) -> Fabric:
        """The network as the core knows it, with the servers that take part in multicasts as its hosts."""
        hosts = {host_name(server): _host(network, server) for server in servers}
        racks = {rack_name(rack): self._rack(network, rack) for rack in range(network.racks)}
        first = network.racks * network.light_ports + 1
        splitters = {
            f"s{n}": Splitter(
                f"s{n}", SWITCH, first + n, tuple(range(first + n * self.ways, first + (n + 1) * self.ways))
            )
            for n in range(self.splitters)
        }
        return Fabric(racks, hosts, splitters, (SWITCH,), network.light_rate)

    def _rack(self, network: Network, rack: int) -> Rack:
        numbers = range(rack * network.light_ports + 1, (rack + 1) * network.light_ports + 1)
        ports = [
            OpticalPort(rack_name(rack), FIRST_OPTICAL_PORT + place, SWITCH, number, number)
            for place, number in enumerate(numbers)
        ]
        if self.directional:
            ports = [side for port in ports for side in port.sides()]
        return Rack(rack_name(rack), DatapathId(rack + 1), tuple(ports))


def rack_name(rack: int) -> str:
    """What the core calls a rack."""
    return f"r{rack}"


def host_name(server: int) -> str:
    """What the core calls a server."""
    return f"h{server}"


def server_of(host: str) -> int:
    """The server that the core calls so."""
    return int(host[1:])


def place_of(port: OpticalPort) -> tuple[int, int]:
    """The rack of an optical port and its place among the rack's ports."""
    return int(port.rack[1:]), port.port - FIRST_OPTICAL_PORT


def _host(network: Network, server: int) -> Host:
    rack = network.rack_of(server)
    number = server + 1
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return Host(host_name(server), rack_name(rack), 1 + server - rack * network.servers_per_rack, address)
