"""Layouts: everything that devices hold for one group, and the steps between two of them.

A change has two steps so that no remaining receiver loses a packet: the first adds everything new (forwards get the
outputs of both layouts); the second, after all confirmations, removes the old.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from blast_controller.core.light.forwarding import Forwards
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, Device, ElementId

Circuits = tuple[CrossConnect, ...]


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Cross-connects, roots before leaves, and forwards by datapath: the state of devices, present or intended."""

    circuits: Circuits
    forwards: Forwards

    def on(self, device: Device) -> DeviceState:
        """Return the share of one device."""
        if isinstance(device, str):
            return DeviceState(tuple(c for c in self.circuits if c.switch == device), {})
        return DeviceState((), _on(device, self.forwards))

    @property
    def devices(self) -> set[Device]:
        """Return the devices that hold something of it."""
        return {c.switch for c in self.circuits} | set(self.forwards)


NOTHING = DeviceState((), {})


@dataclass(frozen=True, slots=True)
class Layout:
    """The receivers (host names), the light tree (None within one rack) and the forwards of a group."""

    receivers: tuple[str, ...]
    tree: LightTree | None
    forwards: Forwards

    @property
    def circuits(self) -> Circuits:
        """Return the tree's cross-connects, roots first."""
        return self.tree.circuits if self.tree else ()

    @property
    def elements(self) -> frozenset[ElementId]:
        """Return the ports and splitters that the tree holds."""
        return self.tree.elements if self.tree else frozenset()

    @property
    def device_state(self) -> DeviceState:
        """Return the device state of the layout."""
        return DeviceState(self.circuits, self.forwards)


@dataclass(frozen=True, slots=True)
class Step:
    """One step for some devices: state to remove and to add."""

    disconnect: Circuits
    connect: Circuits
    remove: Forwards
    add: Forwards

    @property
    def devices(self) -> set[Device]:
        """Return the devices that have something to do."""
        return {c.switch for c in (*self.disconnect, *self.connect)} | set(self.remove) | set(self.add)

    def only(self, device: Device) -> Step:
        """Return the share of one device."""
        if isinstance(device, str):
            disconnect = tuple(c for c in self.disconnect if c.switch == device)
            return Step(disconnect, tuple(c for c in self.connect if c.switch == device), {}, {})
        return Step((), (), _on(device, self.remove), _on(device, self.add))


def _on(datapath: DatapathId, forwards: Forwards) -> Forwards:
    return {datapath: forwards[datapath]} if datapath in forwards else {}


def step_between(before: DeviceState, after: DeviceState) -> Step:
    """Return the step from the device state `before` to `after`."""
    old, new = before.forwards, after.forwards
    return Step(
        disconnect=_without(before.circuits, after.circuits),
        connect=_without(after.circuits, before.circuits),
        remove={d: lost for d, found in old.items() if (lost := _keys_lost(found, new.get(d, ())))},
        add={d: more for d, found in new.items() if (more := tuple(f for f in found if f not in old.get(d, ())))},
    )


def both(old: DeviceState, new: DeviceState) -> DeviceState:
    """Return the union of `new` and the parts of `old` that do not conflict with it."""
    inputs = {(c.switch, c.input) for c in new.circuits}
    outputs = {(c.switch, c.output) for c in new.circuits}
    kept = (c for c in old.circuits if (c.switch, c.input) not in inputs and (c.switch, c.output) not in outputs)
    datapaths = {**old.forwards, **new.forwards}
    forwards = {d: _merged(old.forwards.get(d, ()), new.forwards.get(d, ())) for d in datapaths}
    return DeviceState((*kept, *new.circuits), forwards)


def everything(states: Iterable[DeviceState]) -> DeviceState:
    """Return all that any of `holdings` has."""
    circuits: dict[CrossConnect, None] = {}
    forwards: dict[DatapathId, dict[tuple[int, str, str], Forward]] = {}
    for state in states:
        circuits |= dict.fromkeys(state.circuits)
        for datapath, found in state.forwards.items():
            forwards.setdefault(datapath, {}).update({f.key: f for f in found})
    return DeviceState(tuple(circuits), {datapath: tuple(found.values()) for datapath, found in forwards.items()})


def _without(circuits: Circuits, others: Circuits) -> Circuits:
    return tuple(c for c in circuits if c not in others)


def _merged(old: tuple[Forward, ...], new: tuple[Forward, ...]) -> tuple[Forward, ...]:
    merged = {f.key: f for f in old}
    for forward in new:
        outputs = {*forward.outputs, *(merged[forward.key].outputs if forward.key in merged else ())}
        merged[forward.key] = replace(forward, outputs=tuple(sorted(outputs)))
    return tuple(merged.values())


def _keys_lost(old: tuple[Forward, ...], new: tuple[Forward, ...]) -> tuple[Forward, ...]:
    kept = {f.key for f in new}
    return tuple(f for f in old if f.key not in kept) if kept else old
