"""A layout is all that devices hold for one group; the functions here are the steps from one layout to another.

A change is made in two steps so that no receiver who stays loses a packet: first everything new is added (forwards
get the outputs of both layouts), and only when that is confirmed is the old taken away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from blast_controller.core.commands import Forward
from blast_controller.core.fabric import CrossConnect
from blast_controller.core.forwarding import Forwards
from blast_controller.core.light_tree import LightTree


@dataclass(frozen=True, slots=True)
class Layout:
    """The receivers (host names), the light tree (None within one rack) and the forwards of a group."""

    receivers: tuple[str, ...]
    tree: LightTree | None
    forwards: Forwards

    @property
    def circuits(self) -> tuple[CrossConnect, ...]:
        """The tree's cross-connects, roots first."""
        return self.tree.circuits if self.tree else ()

    @property
    def elements(self) -> frozenset[str]:
        """The ports and splitters that the tree holds."""
        return self.tree.elements if self.tree else frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """One step for all devices: what goes and what comes."""

    disconnect: tuple[CrossConnect, ...]
    connect: tuple[CrossConnect, ...]
    remove: Forwards
    add: Forwards

    @property
    def datapaths(self) -> set[int]:
        """The ToRs that have something to do."""
        return set(self.remove) | set(self.add)

    @property
    def switches(self) -> set[str]:
        """The optical switches that have something to do."""
        return {c.switch for c in (*self.disconnect, *self.connect)}


def lighting(layout: Layout) -> Step:
    """Everything a layout needs, from nothing."""
    return Step((), layout.circuits, {}, layout.forwards)


def adding(old: Layout, new: Layout) -> Step:
    """What `new` has beyond `old`; both are in force afterwards."""
    both = {datapath: _merged(old.forwards.get(datapath, ()), mine) for datapath, mine in new.forwards.items()}
    return Step((), _without(new.circuits, old.circuits), {}, _changed(both, old.forwards))


def removing(old: Layout, new: Layout) -> Step:
    """What `old` has beyond `new`, when both are in force; only `new` is afterwards."""
    gone = {datapath: _keys_lost(mine, new.forwards.get(datapath, ())) for datapath, mine in old.forwards.items()}
    both = {datapath: _merged(old.forwards.get(datapath, ()), mine) for datapath, mine in new.forwards.items()}
    return Step(_without(old.circuits, new.circuits), (), _nonempty(gone), _changed(new.forwards, both))


def releasing(layouts: Iterable[Layout]) -> Step:
    """Everything of all `layouts`, to nothing."""
    circuits: dict[CrossConnect, None] = {}
    forwards: dict[int, dict[tuple[int, str, str], Forward]] = {}
    for layout in layouts:
        circuits |= dict.fromkeys(layout.circuits)
        for datapath, found in layout.forwards.items():
            forwards.setdefault(datapath, {}).update({f.key: f for f in found})
    return Step(tuple(circuits), (), {datapath: tuple(found.values()) for datapath, found in forwards.items()}, {})


def _without(circuits: tuple[CrossConnect, ...], others: tuple[CrossConnect, ...]) -> tuple[CrossConnect, ...]:
    return tuple(c for c in circuits if c not in others)


def _merged(old: tuple[Forward, ...], new: tuple[Forward, ...]) -> tuple[Forward, ...]:
    outputs = {f.key: f.outputs for f in old}
    return tuple(replace(f, outputs=tuple(sorted({*f.outputs, *outputs.get(f.key, ())}))) for f in new)


def _keys_lost(old: tuple[Forward, ...], new: tuple[Forward, ...]) -> tuple[Forward, ...]:
    kept = {f.key for f in new}
    return tuple(f for f in old if f.key not in kept)


def _changed(wanted: Forwards, present: Forwards) -> Forwards:
    return _nonempty({d: tuple(f for f in mine if f not in present.get(d, ())) for d, mine in wanted.items()})


def _nonempty(forwards: Forwards) -> Forwards:
    return {datapath: found for datapath, found in forwards.items() if found}
