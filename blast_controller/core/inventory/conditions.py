"""Unusable elements with reasons (quarantined, or occupied by foreign cross-connects), and disconnected devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from blast_controller.core.model.fabric import CrossConnect, Fabric, Splitter
from blast_controller.core.model.identifiers import Device, ElementId, SwitchId


class Conditions:
    """Changes nothing but itself."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._quarantined: dict[ElementId, str] = {}
        self._occupied: dict[SwitchId, dict[ElementId, CrossConnect]] = {}
        self._foreign: dict[ElementId, str] = {}
        self._away: dict[Device, str] = dict.fromkeys(fabric.switches, "not connected yet")
        self._away |= {rack.datapath: "not connected yet" for rack in fabric.racks.values()}

    @property
    def quarantined(self) -> Mapping[ElementId, str]:
        """Return the quarantined elements with their reasons."""
        return MappingProxyType(self._quarantined)

    @property
    def occupied(self) -> Mapping[SwitchId, Mapping[ElementId, CrossConnect]]:
        """Return the elements of each switch that circuits touch which are not ours, and which those are."""
        return MappingProxyType(self._occupied)

    @property
    def away(self) -> Mapping[Device, str]:
        """Return the devices that are away, and why."""
        return MappingProxyType(self._away)

    def unusable(self, element: ElementId) -> str | None:
        """Return why an element is unusable, or None."""
        return self._quarantined.get(element) or self._foreign.get(element)

    def usable_outputs(self, splitter: Splitter) -> Splitter:
        """Return a splitter without the outputs that are quarantined."""
        return splitter.without(self._quarantined.__contains__) if self._quarantined else splitter

    def bad_outputs(self, splitters: Iterable[Splitter]) -> set[int]:
        """Return the outputs of these splitters that must not feed a leaf."""
        return {
            output
            for s in splitters
            for output in s.outputs
            if self.unusable(s.element) or self.unusable(s.output_element(output))
        }

    def quarantine(self, element: ElementId, reason: str) -> None:
        """Quarantine an element."""
        self._quarantined[element] = reason

    def lift_quarantine(self, element: ElementId) -> bool:
        """Let an element be used again; return true if it was quarantined."""
        return self._quarantined.pop(element, None) is not None

    def note_away(self, device: Device, reason: str) -> None:
        """Note that a device disconnected."""
        self._away[device] = reason

    def note_back(self, device: Device) -> None:
        """Note that a device connected."""
        self._away.pop(device, None)

    def note_foreign(self, switch: SwitchId, circuits: Collection[CrossConnect]) -> set[ElementId]:
        """Remember the foreign cross-connects on `switch`; return the elements that are, or were, occupied by any."""
        before = self._occupied.get(switch, {})
        found = self._occupied[switch] = self._touched(switch, circuits)
        self._foreign = {element: _reason(c) for each in self._occupied.values() for element, c in each.items()}
        return {*before, *found}

    def _touched(self, switch: SwitchId, circuits: Collection[CrossConnect]) -> dict[ElementId, CrossConnect]:
        inputs = {c.input: c for c in circuits}
        outputs = {c.output: c for c in circuits}
        found: dict[ElementId, CrossConnect | None] = {}
        for port in self._fabric.ports_on(switch):
            found[port.element] = inputs.get(port.input) or outputs.get(port.output)
        for splitter in self._fabric.splitters_on(switch):
            fed = next((inputs[output] for output in splitter.outputs if output in inputs), None)
            found[splitter.element] = outputs.get(splitter.input) or fed
        return {element: circuit for element, circuit in found.items() if circuit is not None}


def _reason(circuit: CrossConnect) -> str:
    place = f"{circuit.input} to {circuit.output} on {circuit.switch}"
    return f"occupied by the cross-connect {place}, which Blast did not create"
