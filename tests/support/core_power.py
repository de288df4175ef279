"""Optics for fabrics in tests, and an oracle of its own for received power: sums along the circuits of a switch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from algorithms.power_budget import Light, Loss, Passive, Piece, Transceiver, exactly
from blast_controller.core.fabric import CrossConnect, Fabric, OpticalPort
from blast_controller.core.optics import Optics

LEG_LOSS = {2: Loss(3.2, 3.5, 3.7), 4: Loss(6.1, 6.9, 7.4), 8: Loss(9.2, 10.2, 10.6), 16: Loss(12.1, 13.4, 13.9)}
PASS_LOSS = Loss(0.5, 1.0, 1.5)


def with_optics(
    fabric: Fabric,
    fibres: Mapping[str, float] | None = None,
    sensitivity: float = -14.0,
    overload: Mapping[str, float] | None = None,
    launch: tuple[float, float, float] = (0.0, 1.0, 2.0),
) -> Fabric:
    """The fabric with losses everywhere: `fibres` to some racks' receivers lose more than 0.3 dB.

    `overload` is the most power that some racks' receivers stand, 10 dBm elsewhere.
    """
    lossy, weak = fibres or {}, overload or {}
    ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]

    def transceiver(port: OpticalPort) -> Transceiver:
        most, fibre = weak.get(port.rack, 10.0), exactly(lossy.get(port.rack, 0.0))
        return Transceiver(port.element, Light(*launch), sensitivity, most, exactly(0.3), fibre)

    pieces = (Piece(s.element, s.ways, LEG_LOSS[s.ways], price=10.0 * s.ways**0.5) for s in fabric.splitters.values())
    passes = {name: Passive(f"switch:{name}", PASS_LOSS) for name in fabric.switches}
    optics = Optics({port.element: transceiver(port) for port in ports}, {p.name: p for p in pieces}, passes)
    return replace(fabric, optics=optics)


def received(fabric: Fabric, circuits: Collection[CrossConnect], port: OpticalPort) -> tuple[float, float]:
    """The least and the most power (dBm) that a port receives by these circuits."""
    feeds = {(c.switch, c.output): c.input for c in circuits}
    source = feeds[port.switch, port.output]
    fibre = fabric.optics.ports[port.element].from_switch
    least, most = -PASS_LOSS.worst - fibre.worst, -PASS_LOSS.best - fibre.best
    while True:
        splitter = next((s for s in fabric.splitters.values() if s.switch == port.switch and source in s.outputs), None)
        if splitter is None:
            break
        loss = fabric.optics.splitters[splitter.element].loss
        least, most = least - loss.worst - PASS_LOSS.worst, most - loss.best - PASS_LOSS.best
        source = feeds[port.switch, splitter.input]
    (sender,) = [p for p in fabric.ports_on(port.switch) if p.input == source]
    of_sender = fabric.optics.ports[sender.element]
    launch, fibre = of_sender.launch, of_sender.to_switch
    return least + launch.worst - fibre.worst, most + launch.best - fibre.best


def is_lit_well(fabric: Fabric, circuits: Collection[CrossConnect], port: OpticalPort) -> bool:
    """Whether what a port receives is within what its transceiver works with."""
    least, most = received(fabric, circuits, port)
    needs = fabric.optics.ports[port.element]
    return least >= needs.sensitivity - 1e-5 and most <= needs.overload + 1e-5
