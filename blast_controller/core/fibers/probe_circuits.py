"""The cross-connects that are made only to probe fibers: held, journalled first, and always taken away again.

They belong to no reservation, so they and the elements that they need are held under a number that none has. What the
journal names here may be on the switch after a crash; it is removed when the switch is there again, and only then are
its elements free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from blast_controller.core.inventory.custody import PROBER
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.layout import Step
from blast_controller.core.model.events import StepConfirmed, StepDark, StepFailed
from blast_controller.core.model.fabric import CrossConnect, Fabric
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.model.records import Body, Record
from blast_controller.core.rollout.outbox import Outbox

KIND = "probe"
"""The kind of record that names the circuits of one switch."""


@dataclass(slots=True)
class _Bench:
    """One switch: `present` is what may be on it, `wanted` what shall be; `step` is None while it has nothing to do.
    The elements `done` are not needed for what is wanted, and are given back when nothing else is there."""

    elements: set[ElementId]
    present: frozenset[CrossConnect] = frozenset()
    wanted: frozenset[CrossConnect] = frozenset()
    step: int | None = None
    clearing: bool = False
    done: set[ElementId] = field(default_factory=set)


class ProbeCircuits:
    """The benches of all switches that are probed, or are still to be cleared."""

    def __init__(self, fabric: Fabric, inventory: Inventory, outbox: Outbox) -> None:
        self._fabric = fabric
        self._inventory = inventory
        self._outbox = outbox
        self._benches: dict[SwitchId, _Bench] = {}
        self._steps = 0

    def circuits(self, switch: SwitchId) -> frozenset[CrossConnect]:
        """What may be on a switch and is ours."""
        return self._benches[switch].present if switch in self._benches else frozenset()

    @property
    def present(self) -> Mapping[SwitchId, frozenset[CrossConnect]]:
        """What may be on each switch and is ours."""
        return {switch: bench.present for switch, bench in self._benches.items()}

    def has(self, switch: SwitchId) -> bool:
        """Whether a switch is being probed, or has still to be cleared."""
        return switch in self._benches

    # ------------------------------------------------------------------------------------------- probing

    def take(self, switch: SwitchId, elements: Collection[ElementId]) -> None:
        """Hold free elements of a switch that has no bench. Raises DoubleBooked."""
        self._inventory.take(elements, PROBER)
        self._benches[switch] = _Bench(set(elements))

    def lay(self, switch: SwitchId, circuits: Collection[CrossConnect], done: Iterable[ElementId]) -> bool:
        """Have these circuits on the switch, alone, and let others use what is `done` then; whether that is so now."""
        bench = self._benches[switch]
        bench.done = bench.elements.intersection(done)
        if bench.present == frozenset(circuits):
            self._give_back(bench)
            return True
        self._order(switch, bench, circuits)
        return False

    def clear(self, switch: SwitchId) -> bool:
        """Take everything away; whether that is done already."""
        bench = self._benches[switch]
        bench.clearing = True
        if not bench.present:
            self._forget(switch)
            return True
        self._order(switch, bench, ())
        return False

    def _order(self, switch: SwitchId, bench: _Bench, circuits: Collection[CrossConnect]) -> None:
        old, bench.wanted = bench.present, frozenset(circuits)
        bench.present |= bench.wanted
        self._steps += 1
        bench.step = self._steps
        body = {"circuits": [[c.input, c.output] for c in sorted(bench.present)]}
        self._outbox.record(Record(KIND, switch, body, note="clearing" if bench.clearing else "probing"))
        step = Step(tuple(sorted(old - bench.wanted)), tuple(c for c in circuits if c not in old), {}, {})
        self._outbox.step(PROBER, bench.step, step)

    def _give_back(self, bench: _Bench) -> None:
        self._inventory.free(bench.done)
        bench.elements -= bench.done
        bench.done = set()

    def _forget(self, switch: SwitchId) -> None:
        self._inventory.free(self._benches.pop(switch).elements)
        self._outbox.record(Record(KIND, switch, None, note="cleared"))

    # -------------------------------------------------------------------------------------------- devices

    def answered(self, event: StepConfirmed | StepFailed | StepDark) -> bool:
        """Take a switch's answer; whether it is the one that was waited for."""
        switch = event.device
        bench = self._benches.get(switch) if isinstance(switch, str) else None
        if not isinstance(switch, str) or bench is None or bench.step != event.step:
            return False
        bench.step = None
        if not isinstance(event, StepFailed):
            bench.present = bench.wanted
            self._give_back(bench)
            if bench.clearing:
                self._forget(switch)
        return True

    def back(self, switch: SwitchId, circuits: frozenset[CrossConnect]) -> bool:
        """The switch is there again and holds these circuits; whether nothing of ours is left on it."""
        bench = self._benches.get(switch)
        if bench is None:
            return False
        # What was handed in when the new session was there but not yet heard of is done after this was read.
        if bench.step is None:
            bench.present &= circuits
        return self.clear(switch)

    def try_again(self, switch: SwitchId) -> bool:
        """Clear a switch that has refused to be cleared; whether that is done."""
        bench = self._benches.get(switch)
        if bench is None or bench.step is not None or not bench.clearing:
            return False
        # One that is away is cleared when it is back.
        return switch not in self._inventory.away and self.clear(switch)

    # -------------------------------------------------------------------------------------------- restart

    def adopt(self, switch: SwitchId, body: Body, reserved: Collection[CrossConnect]) -> None:
        """Take over what an earlier run may have left on a switch; what is `reserved` is no longer a probe's."""
        circuits = frozenset(CrossConnect(switch, *pair) for pair in body["circuits"]).difference(reserved)
        elements = self._touched_by(switch, circuits) - self._inventory.holders.keys()
        self._inventory.take(elements, PROBER)
        self._benches[switch] = _Bench(elements, circuits, clearing=True)

    def _touched_by(self, switch: SwitchId, circuits: Iterable[CrossConnect]) -> set[ElementId]:
        inputs, outputs = {c.input for c in circuits}, {c.output for c in circuits}
        touched = {p.element for p in self._fabric.ports_on(switch) if p.input in inputs or p.output in outputs}
        for splitter in self._fabric.splitters.values():
            if splitter.switch == switch and (splitter.input in outputs or inputs.intersection(splitter.outputs)):
                touched.add(splitter.element)
        return touched
