"""Who holds what: ports, splitters and group addresses, and which of them cannot be used and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network

from algorithms.b_matching.residual import Residual
from blast_controller.core.errors import CoreError
from blast_controller.core.events import Device
from blast_controller.core.fabric import CrossConnect, Fabric, OpticalPort, Splitter


class DoubleBooked(CoreError):
    """Our fault: an element was about to be held by two reservations."""


class Ledger:
    """Exact accounting of the fabric's elements. Changes nothing but itself."""

    def __init__(self, fabric: Fabric, groups: IPv4Network, most_splitters: int | None) -> None:
        self._fabric = fabric
        self._groups = groups
        self._most_splitters = most_splitters
        self._ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]
        self._next_group = 1
        self._addresses: set[str] = set()
        self.holder: dict[str, int] = {}
        self.quarantined: dict[str, str] = {}
        self.occupied: dict[str, dict[str, str]] = {}
        self.away: dict[Device, str] = dict.fromkeys(fabric.switches, "not connected yet")
        self.away |= {rack.datapath: "not connected yet" for rack in fabric.racks.values()}

    @property
    def elements(self) -> list[str]:
        """Every port and splitter of the fabric."""
        return [*(p.element for p in self._ports), *(s.element for s in self._fabric.splitters.values())]

    # ------------------------------------------------------------------------------------------- holding

    def take(self, elements: Iterable[str], reservation: int) -> None:
        """Let `reservation` hold `elements`. Raises DoubleBooked, with nothing changed, if another holds one."""
        wanted = list(elements)
        for element in wanted:
            if self.holder.get(element, reservation) != reservation:
                raise DoubleBooked(f"{element} is held by reservation {self.holder[element]}, wanted by {reservation}")
        self.holder.update(dict.fromkeys(wanted, reservation))

    def free(self, elements: Iterable[str]) -> None:
        """Give `elements` back."""
        for element in elements:
            del self.holder[element]

    def take_address(self) -> str | None:
        """A group address that nobody uses, or None. Used ones come round last, so that a late sender hits nobody."""
        size = self._groups.num_addresses - 2
        for offset in range(size):
            index = (self._next_group - 1 + offset) % size + 1
            address = str(IPv4Address(int(self._groups.network_address) + index))
            if address not in self._addresses:
                self._next_group = index + 1
                self._addresses.add(address)
                return address
        return None

    def free_address(self, address: str) -> None:
        """Give a group address back."""
        self._addresses.remove(address)

    # -------------------------------------------------------------------------------------------- usable?

    def unusable(self, element: str) -> str | None:
        """Why an element cannot be used by anyone, or None."""
        return self.quarantined.get(element) or next(
            (found[element] for found in self.occupied.values() if element in found), None
        )

    def note_foreign(self, switch: str, circuits: Collection[CrossConnect]) -> None:
        """Remember the cross-connects on `switch` that are not ours: what they touch cannot be used."""
        inputs = {c.input: c for c in circuits}
        outputs = {c.output: c for c in circuits}
        found: dict[str, str] = {}

        def note(element: str, circuit: CrossConnect | None) -> None:
            if circuit:
                found[element] = (
                    f"occupied by the cross-connect {circuit.input} to {circuit.output} on {switch}, "
                    "which Blast did not make"
                )

        for port in self._fabric.ports_on(switch):
            note(port.element, inputs.get(port.input) or outputs.get(port.output))
        for splitter in self._fabric.splitters.values():
            if splitter.switch == switch:
                legs = next((inputs[leg] for leg in splitter.outputs if leg in inputs), None)
                note(splitter.element, outputs.get(splitter.input) or legs)
        self.occupied[switch] = found

    def _usable(self, element: str) -> bool:
        return self.unusable(element) is None

    def _free(self, element: str) -> bool:
        return element not in self.holder and self._usable(element)

    # ---------------------------------------------------------------------------------------- what is left

    def residual(self, capacity: bool = False) -> Residual:
        """What can be used now; with `capacity`, what could be used if nobody held anything and no device were away."""
        ports: dict[str, Counter[str]] = {switch: Counter() for switch in self._fabric.switches}
        splitters: dict[str, Counter[int]] = {switch: Counter() for switch in self._fabric.switches}
        test = self._usable if capacity else self._free
        for port in self._ports:
            if test(port.element) and (capacity or self._present(port)):
                ports[port.switch][port.rack] += 1
        for splitter in self._fabric.splitters.values():
            if test(splitter.element) and (capacity or splitter.switch not in self.away):
                splitters[splitter.switch][splitter.ways] += 1
        return Residual(ports, splitters, self._most_splitters)

    def _present(self, port: OpticalPort) -> bool:
        return port.switch not in self.away and self._fabric.racks[port.rack].datapath not in self.away

    def free_port(self, rack: str, switch: str) -> OpticalPort | None:
        """A free optical port of `rack` on `switch`."""
        ports = self._fabric.racks[rack].optical_ports
        return next((p for p in ports if p.switch == switch and self._free(p.element) and self._present(p)), None)

    def free_splitters(self, switch: str) -> list[Splitter]:
        """The free splitters on `switch`."""
        if switch in self.away:
            return []
        return [s for s in self._fabric.splitters.values() if s.switch == switch and self._free(s.element)]
