"""Temporary cross-connects of the fiber check: reserved, written to the journal first, and always removed.

They belong to no reservation; their elements are held under a special number. Circuits in the journal may still be on
the switch after a crash; they are removed when the switch reconnects, and only then are their elements free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.layout import Step
from blast_controller.core.model.events import LightNotDetected, StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect, Fabric
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.model.records import Body, Record
from blast_controller.core.rollout.outbox import Outbox

KIND = "probe"
"""The kind of record that names the circuits of one switch."""


@dataclass(slots=True)
class _ProbedSwitch:
    """The probe circuits of one switch.

    `present` circuits may exist on it, `target` ones shall exist; `step` is None while it is idle. The elements `done`
    are not needed for `target` and are freed when no other circuit is present.
    """

    elements: set[ElementId]
    present: frozenset[CrossConnect] = frozenset()
    target: frozenset[CrossConnect] = frozenset()
    step: int | None = None
    clearing: bool = False
    done: set[ElementId] = field(default_factory=set)


class ProbeCircuits:
    """The benches of all switches that are probed, or are still to be cleared."""

    def __init__(self, fabric: Fabric, inventory: Inventory, outbox: Outbox) -> None:
        self._fabric = fabric
        self._inventory = inventory
        self._outbox = outbox
        self._benches: dict[SwitchId, _ProbedSwitch] = {}
        self._steps = 0

    def circuits(self, switch: SwitchId) -> frozenset[CrossConnect]:
        """Return the probe circuits that may exist on a switch."""
        return self._benches[switch].present if switch in self._benches else frozenset()

    @property
    def present(self) -> Mapping[SwitchId, frozenset[CrossConnect]]:
        """Return the probe circuits that may exist on each switch."""
        return {switch: bench.present for switch, bench in self._benches.items()}

    def has(self, switch: SwitchId) -> bool:
        """Return true if a switch is being probed or cleared."""
        return switch in self._benches

    # ------------------------------------------------------------------------------------------- probing

    def take(self, switch: SwitchId, elements: Collection[ElementId]) -> None:
        """Hold free elements of a switch that has no bench. Raises DoubleBookingError."""
        self._inventory.take(elements, PROBER)
        self._benches[switch] = _ProbedSwitch(set(elements))

    def lay(self, switch: SwitchId, circuits: Collection[CrossConnect], done: Iterable[ElementId]) -> bool:
        """Request exactly these circuits on the switch, and free `done` afterwards.

        Return true if the circuits exist already.
        """
        bench = self._benches[switch]
        bench.done = bench.elements.intersection(done)
        if bench.present == frozenset(circuits):
            self._give_back(bench)
            return True
        self._order(switch, bench, circuits)
        return False

    def clear(self, switch: SwitchId) -> bool:
        """Request the removal of all probe circuits of a switch; return true if there are none."""
        bench = self._benches[switch]
        bench.clearing = True
        if not bench.present:
            self._forget(switch)
            return True
        self._order(switch, bench, ())
        return False

    def _order(self, switch: SwitchId, bench: _ProbedSwitch, circuits: Collection[CrossConnect]) -> None:
        old, bench.target = bench.present, frozenset(circuits)
        bench.present |= bench.target
        self._steps += 1
        bench.step = self._steps
        body = {"circuits": [[c.input, c.output] for c in sorted(bench.present)]}
        self._outbox.record(Record(KIND, switch, body, note="clearing" if bench.clearing else "probing"))
        step = Step(tuple(sorted(old - bench.target)), tuple(c for c in circuits if c not in old), {}, {})
        self._outbox.step(PROBER, bench.step, step)

    def _give_back(self, bench: _ProbedSwitch) -> None:
        self._inventory.free(bench.done)
        bench.elements -= bench.done
        bench.done = set()

    def _forget(self, switch: SwitchId) -> None:
        self._inventory.free(self._benches.pop(switch).elements)
        self._outbox.record(Record(KIND, switch, None, note="cleared"))

    # -------------------------------------------------------------------------------------------- devices

    def answered(self, event: StepConfirmed | StepFailed | LightNotDetected) -> bool:
        """Handle a switch's answer; return true if it is the awaited one."""
        switch = event.device
        bench = self._benches.get(switch) if isinstance(switch, str) else None
        if not isinstance(switch, str) or bench is None or bench.step != event.step:
            return False
        bench.step = None
        if not isinstance(event, StepFailed):
            bench.present = bench.target
            self._give_back(bench)
            if bench.clearing:
                self._forget(switch)
        return True

    def back(self, switch: SwitchId, circuits: frozenset[CrossConnect]) -> bool:
        """Handle the return of a switch with these circuits. Return true if no probe circuits are left on it."""
        bench = self._benches.get(switch)
        if bench is None:
            return False
        # The reading is older than commands sent between the new session and its event.
        if bench.step is None:
            bench.present &= circuits
        return self.clear(switch)

    def try_again(self, switch: SwitchId) -> bool:
        """Clear a switch that has refused to be cleared; return true if that is done."""
        bench = self._benches.get(switch)
        if bench is None or bench.step is not None or not bench.clearing:
            return False
        # One that is away is cleared when it is back.
        return switch not in self._inventory.away and self.clear(switch)

    # -------------------------------------------------------------------------------------------- restart

    def adopt(self, switch: SwitchId, body: Body, reserved: Collection[CrossConnect]) -> None:
        """Adopt circuits of an earlier run on a switch, except the `reserved` ones."""
        circuits = frozenset(CrossConnect(switch, *pair) for pair in body["circuits"]).difference(reserved)
        elements = self._touched_by(switch, circuits) - self._inventory.holders.keys()
        self._inventory.take(elements, PROBER)
        self._benches[switch] = _ProbedSwitch(elements, circuits, clearing=True)

    def _touched_by(self, switch: SwitchId, circuits: Iterable[CrossConnect]) -> set[ElementId]:
        inputs, outputs = {c.input for c in circuits}, {c.output for c in circuits}
        touched = {p.element for p in self._fabric.ports_on(switch) if p.input in inputs or p.output in outputs}
        for splitter in self._fabric.splitters.values():
            if splitter.switch == switch and (splitter.input in outputs or inputs.intersection(splitter.outputs)):
                touched.add(splitter.element)
        return touched
