"""The ports and splitters of an optical switch, by name, and which of them circuits touch."""

from __future__ import annotations

from collections.abc import Collection

from blast_controller.core.model.fabric import CrossConnect, Fabric


def pieces_on(fabric: Fabric, switch: str) -> set[str]:
    """All of a switch."""
    splitters = {splitter.element for splitter in fabric.splitters.values() if splitter.switch == switch}
    return splitters | {port.element for port in fabric.ports_on(switch)}


def touched_by(fabric: Fabric, circuits: Collection[CrossConnect]) -> set[str]:
    """Those at which any of these circuits begins or ends."""
    inputs, outputs = {(c.switch, c.input) for c in circuits}, {(c.switch, c.output) for c in circuits}
    ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]
    touched = {p.element for p in ports if (p.switch, p.input) in inputs or (p.switch, p.output) in outputs}
    for splitter in fabric.splitters.values():
        legs = {(splitter.switch, leg) for leg in splitter.outputs}
        if (splitter.switch, splitter.input) in outputs or legs & inputs:
            touched.add(splitter.element)
    return touched
