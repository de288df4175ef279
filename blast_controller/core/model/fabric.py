"""The fabric as wired: racks, hosts, optical switches, splitters, and the fibers between them.

`onward` has the fixed connections (fibers and splitters); the controller adds cross-connects. Optical paths are
unidirectional, so `reached_ports` returns where light that enters here leaves, for any set of cross-connects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from blast_controller.core.model.identifiers import (
    DatapathId,
    ElementId,
    SwitchId,
    output_element,
    port_element,
    splitter_element,
)
from blast_controller.core.model.optics import Optics

Node = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A server: its ToR port (`port`, an OpenFlow port number) and its address on the data network.

    `access_rate`: bit/s of its link to the packet network in each direction; None if unknown.
    """

    name: str
    rack: str
    port: int
    ip: str
    access_rate: float | None = None


@dataclass(frozen=True)
class OpticalPort:
    """A ToR's optical port: one transmit fiber into `switch` input `input`, one receive fiber from output `output`.

    `port` is the OpenFlow port number on the rack's datapath. Where the two fibers may serve different groups
    (`sides`) each is an OpticalPort of its own, whose number for the other one is 0.
    """

    rack: str
    port: int
    switch: SwitchId
    input: int
    output: int

    @cached_property
    def element(self) -> ElementId:
        """Return the name of this port as a piece of hardware that can be quarantined."""
        return port_element(self.rack, self.port, self._side)

    @cached_property
    def whole_element(self) -> ElementId:
        """Return the name of the whole port, where this may be a side of it."""
        return port_element(self.rack, self.port)

    @cached_property
    def end(self) -> str:
        """Return the end of a tree that the port can serve.

        This is any port of the rack (`rack`), a transmitter (`rack/tx`) or a receiver (`rack/rx`).
        """
        return f"{self.rack}{self._side}"

    @property
    def _side(self) -> str:
        if bool(self.input) == bool(self.output):
            return ""
        return "/tx" if self.input else "/rx"

    def sides(self) -> tuple[OpticalPort, OpticalPort]:
        """Return the transmitting and the receiving fiber as ports of their own."""
        return replace(self, output=0), replace(self, input=0)


@dataclass(frozen=True, slots=True)
class Rack:
    """A rack: an OpenFlow datapath (possibly shared with other racks) and its optical ports.

    `uplink_rate`: bit/s of its link to the other racks over the packet network in each direction; None if unknown.
    """

    name: str
    datapath: DatapathId
    optical_ports: tuple[OpticalPort, ...]
    uplink_rate: float | None = None


@dataclass(frozen=True)
class Splitter:
    """A 1:N passive splitter on an optical switch.

    Its input is fed by switch output `input`; its outputs enter the switch at the inputs `outputs`.
    """

    name: str
    switch: SwitchId
    input: int
    outputs: tuple[int, ...]

    @cached_property
    def fan_out(self) -> int:
        """Return N, the number of outputs."""
        return len(self.outputs)

    @cached_property
    def element(self) -> ElementId:
        """Return the name of this splitter as a piece of hardware that can be quarantined."""
        return splitter_element(self.name)

    def output_element(self, output: int) -> ElementId:
        """Return the name of the output that enters the switch at input `output`."""
        return output_element(self.name, output)

    def without(self, bad: Callable[[ElementId], bool]) -> Splitter:
        """Return the splitter as if it had only the outputs that are not bad."""
        return replace(self, outputs=tuple(output for output in self.outputs if not bad(self.output_element(output))))


@dataclass(frozen=True, slots=True)
class StaticTree:
    """Splitters fixed between a root and leaves, without a switch.

    The root is port `root_port` of the ToR of `root_rack`, or the host `root_host` itself (then `root_port` is 0);
    leaves are ports of ToRs, by rack, and hosts.
    """

    name: str
    root_rack: str | None
    root_port: int
    root_host: str | None
    leaf_ports: Mapping[str, int]
    leaf_hosts: frozenset[str]


@dataclass(frozen=True, slots=True, order=True)
class CrossConnect:
    """A connection inside an optical switch: light entering at `input` leaves at `output` (numbers from 1)."""

    switch: SwitchId
    input: int
    output: int


@dataclass(frozen=True)
class Fabric:
    """The configured fabric, immutable. `light_rate` is the rate of an optical port in bit/s.

    `optics` has the optical properties of elements; the wiring does not depend on it.
    """

    racks: Mapping[str, Rack]
    hosts: Mapping[str, Host]
    splitters: Mapping[str, Splitter]
    switches: tuple[SwitchId, ...]
    light_rate: float
    static_trees: Mapping[str, StaticTree] = field(default_factory=dict)
    optics: Optics = field(default_factory=Optics)

    @cached_property
    def onward(self) -> Mapping[Node, Sequence[Node]]:
        """Return the fixed connections from each node. A ToR never forwards light from its receiver.

        Nodes: ("tor", rack, port), ("in", switch, n), ("out", switch, n), ("splitter", name).
        """
        found: dict[Node, list[Node]] = defaultdict(list)
        for rack in self.racks.values():
            for port in rack.optical_ports:
                if port.output:
                    found["out", port.switch, port.output].append(("tor", rack.name, port.port))
        for splitter in self.splitters.values():
            node: Node = ("splitter", splitter.name)
            found["out", splitter.switch, splitter.input].append(node)
            found[node] = [("in", splitter.switch, output) for output in splitter.outputs]
        return found

    @cached_property
    def hosts_by_rack(self) -> Mapping[str, tuple[Host, ...]]:
        """Return the hosts of each rack, in the order in which they were declared."""
        found: dict[str, list[Host]] = {name: [] for name in self.racks}
        for host in self.hosts.values():
            found[host.rack].append(host)
        return {name: tuple(hosts) for name, hosts in found.items()}

    @cached_property
    def directional(self) -> bool:
        """Return true if a rack can send to one group and receive from another over the two fibers of one port."""
        return any(p.end != rack.name for rack in self.racks.values() for p in rack.optical_ports)

    def datapath_of(self, rack: str) -> DatapathId:
        """Return the datapath of a rack."""
        return self.racks[rack].datapath

    def root_end(self, rack: str) -> str:
        """Return the end of a tree that a sending rack needs."""
        return f"{rack}/tx" if self.directional else rack

    def leaf_end(self, rack: str) -> str:
        """Return the end of a tree that a receiving rack needs."""
        return f"{rack}/rx" if self.directional else rack

    def whole_ports_on(self, switch: SwitchId) -> list[OpticalPort]:
        """Return every ToR optical port attached to `switch`, both fibers together."""
        joined: dict[tuple[str, int], OpticalPort] = {}
        for port in self.ports_on(switch):
            other = joined.get((port.rack, port.port), port)
            joined[port.rack, port.port] = replace(
                port, input=port.input or other.input, output=port.output or other.output
            )
        return list(joined.values())

    def ports_on(self, switch: SwitchId) -> list[OpticalPort]:
        """Return every ToR optical port attached to `switch`."""
        return self._ports_by_switch.get(switch, [])

    @cached_property
    def _ports_by_switch(self) -> Mapping[SwitchId, list[OpticalPort]]:
        found: defaultdict[SwitchId, list[OpticalPort]] = defaultdict(list)
        for rack in self.racks.values():
            for port in rack.optical_ports:
                found[port.switch].append(port)
        return found

    def splitters_on(self, switch: SwitchId) -> list[Splitter]:
        """Return every splitter attached to `switch`."""
        return self._splitters_by_switch.get(switch, [])

    @cached_property
    def _splitters_by_switch(self) -> Mapping[SwitchId, list[Splitter]]:
        found: defaultdict[SwitchId, list[Splitter]] = defaultdict(list)
        for splitter in self.splitters.values():
            found[splitter.switch].append(splitter)
        return found


def rack_of(end: str) -> str:
    """Return the rack of an end named by `OpticalPort.end`."""
    return end.partition("/")[0]


def reached_ports(fabric: Fabric, circuits: Iterable[CrossConnect], source: OpticalPort) -> set[tuple[str, int]]:
    """Return the (rack, port) pairs that see light when `source` transmits, given these cross-connects."""
    crossed: dict[Node, list[Node]] = defaultdict(list)
    for circuit in circuits:
        crossed["in", circuit.switch, circuit.input].append(("out", circuit.switch, circuit.output))
    lit: set[Node] = set()
    waiting: list[Node] = [("in", source.switch, source.input)]
    while waiting:
        node = waiting.pop()
        if node not in lit:
            lit.add(node)
            waiting += [*fabric.onward.get(node, ()), *crossed.get(node, ())]
    return {(str(n[1]), int(n[2])) for n in lit if n[0] == "tor"}
