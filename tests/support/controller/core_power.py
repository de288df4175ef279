"""Optics for fabrics in tests, and independent oracles of received power and feasible trees.

One oracle sums up the power along the circuits of a switch; the other constructs all trees to find one with enough
power for every leaf.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from algorithms.power_budget import ROUNDING_DB, ElementLoss, Passive, Piece, PowerLevel, Transceiver, Window, exactly
from blast_controller.core.model.fabric import CrossConnect, Fabric, OpticalPort, Splitter
from blast_controller.core.model.optics import Optics

OUTPUT_LOSS = {
    2: ElementLoss(3.2, 3.5, 3.7),
    4: ElementLoss(6.1, 6.9, 7.4),
    8: ElementLoss(9.2, 10.2, 10.6),
    16: ElementLoss(12.1, 13.4, 13.9),
}
PASS_LOSS = ElementLoss(0.5, 1.0, 1.5)
LAUNCH = PowerLevel(0.0, 1.0, 2.0)
Supply = tuple[tuple[Piece, int], ...]
"""The number of pieces of each kind."""


def with_optics(
    fabric: Fabric,
    fibers: Mapping[str, float] | None = None,
    sensitivity: float = -14.0,
    overload: Mapping[str, float] | None = None,
    attenuation: float | None = None,
) -> Fabric:
    """Return the fabric with losses everywhere.

    `fibers` has the losses of the fibers to the receivers of some racks in dB (0 elsewhere), `overload` the maximum
    power of the receivers of some racks in dBm (10 elsewhere), and `sensitivity` the minimum of all, in dBm.
    `attenuation` is the maximum attenuation before each receiver in dB (None: the switches have no attenuators).
    """
    lossy, weak = fibers or {}, overload or {}
    ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]

    def transceiver(port: OpticalPort) -> Transceiver:
        maximum, fiber = weak.get(port.rack, 10.0), exactly(lossy.get(port.rack, 0.0))
        bare = Transceiver(port.element, LAUNCH, sensitivity, maximum, exactly(0.3), fiber)
        return bare if attenuation is None else bare.limited(f"attenuator:{port.switch}/{port.output}", attenuation)

    pieces = (
        Piece(s.element, s.fan_out, OUTPUT_LOSS[s.fan_out], price=10.0 * s.fan_out**0.5)
        for s in fabric.splitters.values()
    )
    passes = {name: Passive(f"switch:{name}", PASS_LOSS) for name in fabric.switches}
    optics = Optics({port.element: transceiver(port) for port in ports}, {p.name: p for p in pieces}, passes)
    return replace(fabric, optics=optics)


def received(fabric: Fabric, circuits: Collection[CrossConnect], port: OpticalPort) -> tuple[float, float]:
    """Return the minimum and maximum power (dBm) that a port receives over these circuits.

    An attenuator leaves what its monitor reads above the level by 1 dB too little.
    """
    feeds = {(c.switch, c.output): c.input for c in circuits}
    source = feeds[port.switch, port.output]
    receiver = fabric.optics.ports[port.element]
    minimum, maximum = -PASS_LOSS.worst, -PASS_LOSS.best
    while True:
        splitter = next((s for s in fabric.splitters.values() if s.switch == port.switch and source in s.outputs), None)
        if splitter is None:
            break
        loss = fabric.optics.splitters[splitter.element].loss
        minimum, maximum = minimum - loss.worst - PASS_LOSS.worst, maximum - loss.best - PASS_LOSS.best
        source = feeds[port.switch, splitter.input]
    (sender,) = [p for p in fabric.ports_on(port.switch) if p.input == source]
    of_sender = fabric.optics.ports[sender.element]
    launch, fiber = of_sender.launch, of_sender.to_switch
    minimum, maximum = minimum + launch.worst - fiber.worst, maximum + launch.best - fiber.best
    if (limiter := receiver.limiter) is not None:
        # Beyond its range it attenuates as much as it can.
        maximum = max(min(maximum, limiter.level + 1.0), maximum - limiter.max_attenuation)
        minimum = min(minimum, limiter.level - 1.0)
    return minimum - receiver.from_switch.worst, maximum - receiver.from_switch.best


def is_lit_well(fabric: Fabric, circuits: Collection[CrossConnect], port: OpticalPort) -> bool:
    """Return True if the power at a port is between its transceiver's sensitivity and overload."""
    minimum, maximum = received(fabric, circuits, port)
    needs = fabric.optics.ports[port.element]
    return minimum >= needs.sensitivity - 1e-5 and maximum <= needs.overload + 1e-5


# ------------------------------------------------------------------------------------------------ any tree at all


def supply_of(fabric: Fabric, splitters: Iterable[Splitter]) -> Supply:
    """Return these splitters by kind, with their outputs."""
    pieces = Counter(replace(fabric.optics.splitters[s.element], fan_out=s.fan_out).kind for s in splitters)
    return tuple(sorted(pieces.items(), key=repr))


def sorts_of(fabric: Fabric, ports: Iterable[OpticalPort]) -> list[Transceiver]:
    """Return the transceivers of these ports without names, identical ones once."""
    return list(dict.fromkeys(replace(fabric.optics.ports[port.element], name="") for port in ports))


def can_light_each_other(one: Transceiver, other: Transceiver, switch: Passive) -> bool:
    """Return True if two ports receive enough power from each other over a circuit in each direction."""
    pairs = ((one, other), (other, one))
    return all(receiver.needed.fits(switch.after(sender.entering)) for sender, receiver in pairs)


@lru_cache(maxsize=100_000)
def can_be_lit(
    sender: Transceiver, receivers: tuple[Transceiver, ...], supply: Supply, switch: Passive, max_pieces: int
) -> bool:
    """Return True if a tree of up to `max_pieces` pieces gives every receiver enough power."""
    windows = [receiver.needed for receiver in receivers]
    lights = (_beyond(switch, slots) for count, slots in _trees(sender.entering, switch, supply) if count <= max_pieces)
    return any(len(found) >= len(windows) and matched(found, windows) for found in lights)


@lru_cache(maxsize=1000)
def _trees(root: PowerLevel, switch: Passive, supply: Supply) -> Sequence[tuple[int, Slots]]:
    """Return all possible trees: the total number of pieces of each, and the power at its open outputs."""
    return [(sum(counts), tuple(slots)) for counts, slots in tiny_trees(root, switch, dict(supply))]


def _beyond(switch: Passive, slots: Slots) -> list[PowerLevel]:
    """Return the power of these outputs after one more pass through the switch, if that is enough."""
    return [switch.after(slot) for slot in slots if slot.best <= switch.max_input + ROUNDING_DB]


Slots = tuple[PowerLevel, ...]


def tiny_trees(
    root: PowerLevel, switch: Passive, supply: Mapping[Piece, int]
) -> Iterable[tuple[tuple[int, ...], list[PowerLevel]]]:
    """Yield every small tree that can be built by hand: (pieces of each kind, power at every open output)."""
    kinds = list(supply)
    start = ((0,) * len(kinds), (root.rounded,))
    seen, waiting = {start}, [start]
    while waiting:
        counts, slots = waiting.pop()
        yield counts, list(slots)
        for place, index in itertools.product(range(len(slots)), range(len(kinds))):
            if counts[index] == supply[kinds[index]]:
                continue
            below = kinds[index].hung(slots[place], switch)
            if below is None:
                continue
            grown = (*slots[:place], *slots[place + 1 :], *[below] * kinds[index].fan_out)
            new = (
                tuple(n + (i == index) for i, n in enumerate(counts)),
                tuple(sorted(grown, key=lambda s: (s.worst, s.best))),
            )
            if new not in seen:
                seen.add(new)
                waiting.append(new)


def matched(lights: Sequence[PowerLevel], windows: Sequence[Window]) -> bool:
    """Return True if every receiver can have its own suitable output (augmenting paths)."""
    holder: dict[int, int] = {}

    def place(receiver: int, tried: set[int]) -> bool:
        for slot, light in enumerate(lights):
            if slot not in tried and windows[receiver].fits(light):
                tried.add(slot)
                if slot not in holder or place(holder[slot], tried):
                    holder[slot] = receiver
                    return True
        return False

    return all(place(receiver, set()) for receiver in range(len(windows)))
