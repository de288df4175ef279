"""Which batches carry out changes, and which change a refused batch is due to: a procedure without a switch.

Everything goes in one batch, or in two where a switch takes deletes and adds apart. A batch that the switch refuses is
tried again without the circuits that the switch names. If it names none, the batch is halved until each refusal
concerns one change: for n changes and one bad port, 2 log2(n) more batches. After each refusal the circuits are read,
because a switch may have done a part, and a circuit that is missing anyway counts as removed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple

from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.fabric import CrossConnect
from optical_switch.errors import RefusedError
from optical_switch.model import Circuit
from optical_switch.session import BatchResult, Capabilities

CONFLICT = "a conflicting cross-connect could not be removed"

StepKey = tuple[int, int]
"""(reservation, step)"""


class CircuitBatch(NamedTuple):
    """Circuits to remove, then circuits to set, in order."""

    deletes: tuple[Circuit, ...]
    adds: tuple[Circuit, ...]


class CircuitReadRequest(NamedTuple):
    """The circuits that are set must be read."""


Answer = Callable[[CircuitChange, str | None], None]
"""Called once for each change: None if it was done, else the refusal."""

Steps = Generator[CircuitBatch | CircuitReadRequest, BatchResult | frozenset[Circuit], None]
"""A generator that receives the `BatchResult` of each batch, and a set of circuits for `CircuitReadRequest`."""


class _Unit(NamedTuple):
    """The smallest cause of a refusal: the circuits that a change still has to remove and to set."""

    change: CircuitChange
    deletes: tuple[Circuit, ...]
    adds: tuple[Circuit, ...]


def key_of(change: CircuitChange) -> StepKey:
    """Return the step of a change."""
    return change.reservation, change.step


def circuits_of(cross_connects: Iterable[CrossConnect]) -> tuple[Circuit, ...]:
    """Return cross-connects without the switch."""
    return tuple(Circuit(c.input, c.output) for c in cross_connects)


class ChangeProcedure:
    """Carries out changes that were handed in together."""

    def __init__(self, capabilities: Capabilities, answer: Answer, refused: Callable[[RefusedError], str]) -> None:
        """Create a procedure; `refused` is called with every refusal of the switch and returns its text."""
        self._capabilities = capabilities
        self._answer = answer
        self._refused = refused
        self._present: frozenset[Circuit] | None = None
        """The circuits that are set, once they had to be read."""
        self._failed: dict[StepKey, str] = {}
        self._immovable: set[Circuit] = set()
        self._stuck: set[int] = set()
        """Reservations with a circuit that could not be removed."""

    def run(self, changes: Sequence[CircuitChange]) -> Steps:
        """Yield batches until each change is answered."""
        for group in _groups(changes, self._capabilities.batch_size):
            units = [_Unit(c, circuits_of(c.disconnect), circuits_of(c.connect)) for c in group]
            if self._capabilities.one_transaction:
                yield from self._settle(units)
                self._answer_all(group)
            else:
                yield from self._settle(_removals(units))
                self._answer_all(change for change in group if not change.connect)
                yield from self._settle(_additions(units))
                self._answer_all(change for change in group if change.connect)

    def _answer_all(self, changes: Iterable[CircuitChange]) -> None:
        for change in changes:
            self._answer(change, self._failed.get(key_of(change)))

    def _settle(self, units: Sequence[_Unit]) -> Steps:
        """Have the units done, or have the units that are to blame marked as failed."""
        units = self._remaining(units)
        deletes, adds = [c for unit in units for c in unit.deletes], [c for unit in units for c in unit.adds]
        for batch in _batches(deletes, adds, self._capabilities.batch_size):
            result = yield batch
            assert isinstance(result, BatchResult)
            if result.error is None and not result.refused:
                self._note(batch)
                continue
            present = yield CircuitReadRequest()
            assert isinstance(present, frozenset)
            self._present = present
            named = self._blame_named(units, result, batch)
            if result.error is not None:
                yield from self._settle(units) if named else self._isolate(units, result.error)
                return

    def _isolate(self, units: list[_Unit], error: RefusedError) -> Steps:
        """Divide units that were refused together."""
        text = self._refused(error)
        tried, units = units, self._remaining(units)
        if len(units) <= 1 and units != tried:
            # A part was done, or was missing anyway: the rest was not tried alone.
            yield from self._settle(units)
            return
        if any(unit.deletes for unit in units) and any(unit.adds for unit in units):
            yield from self._settle(_removals(units))
            yield from self._settle(_additions(units))
            return
        if len(units) == 1:
            unit = units[0]
            if len(unit.deletes) < 2:
                self._blame(unit.change, text, unit.deletes)
                return
            units = [unit._replace(deletes=(circuit,)) for circuit in unit.deletes]
        middle = len(units) // 2
        yield from self._settle(units[:middle])
        yield from self._settle(units[middle:])

    def _remaining(self, units: Iterable[_Unit]) -> list[_Unit]:
        """Return the circuits still to be removed and set, without those of failed changes."""
        present = self._present
        if present is None and not self._stuck:
            # Nothing was refused yet, as nearly always.
            return [unit for unit in units if unit.deletes or unit.adds]
        left = []
        for unit in units:
            if not self._stuck.isdisjoint(unit.change.after):
                self._failed.setdefault(key_of(unit.change), CONFLICT)
            deletes = tuple(c for c in unit.deletes if c not in self._immovable and (present is None or c in present))
            left.append(unit._replace(deletes=deletes))
        removed = {c for unit in left for c in unit.deletes}
        for at, unit in enumerate(left):
            failed = key_of(unit.change) in self._failed
            missing = (c for c in unit.adds if not failed and (present is None or c in removed or c not in present))
            left[at] = unit._replace(adds=tuple(missing))
        return [unit for unit in left if unit.deletes or unit.adds]

    def _note(self, batch: CircuitBatch) -> None:
        if self._present is not None:
            self._present = self._present.difference(batch.deletes).union(batch.adds)

    def _blame_named(self, units: Iterable[_Unit], result: BatchResult, batch: CircuitBatch) -> bool:
        """Mark what the switch named; return false if it named nothing of these units."""
        texts = {error: self._refused(error) for error in result.refused.values()}
        refused = {circuit: texts[error] for circuit, error in result.refused.items()}
        present = self._present or frozenset()
        # One that is removed and set again was refused as an add; if it is the removal, the next batch shows it.
        added = frozenset(batch.adds)
        named = False
        for unit in units:
            held = tuple(c for c in unit.deletes if c in refused and c in present and c not in added)
            missing = [c for c in unit.adds if c in refused and c in added]
            for circuit in (*held, *missing):
                self._blame(unit.change, refused[circuit], held)
                named = True
        return named

    def _blame(self, change: CircuitChange, text: str, held: Iterable[Circuit] = ()) -> None:
        """Mark a change as failed; the switch keeps the circuits `held` that it should remove."""
        self._failed.setdefault(key_of(change), text)
        for circuit in held:
            self._immovable.add(circuit)
            self._stuck.add(change.reservation)


def _removals(units: Iterable[_Unit]) -> list[_Unit]:
    return [unit._replace(adds=()) for unit in units]


def _additions(units: Iterable[_Unit]) -> list[_Unit]:
    return [unit._replace(deletes=()) for unit in units]


def _groups(changes: Sequence[CircuitChange], limit: int | None) -> list[list[CircuitChange]]:
    """Return changes in groups of at most `limit` circuits; a larger change is a group of its own."""
    groups: list[list[CircuitChange]] = [[]]
    size = 0
    for change in changes:
        count = len(change.disconnect) + len(change.connect)
        if limit is not None and groups[-1] and size + count > limit:
            groups.append([])
            size = 0
        groups[-1].append(change)
        size += count
    return groups


def _batches(deletes: Sequence[Circuit], adds: Sequence[Circuit], limit: int | None) -> list[CircuitBatch]:
    """Return batches of at most `limit` circuits: deletes first, adds in order."""
    if limit is None or len(deletes) + len(adds) <= limit:
        return [CircuitBatch(tuple(deletes), tuple(adds))] if deletes or adds else []
    ranges = range(0, len(deletes), limit), range(0, len(adds), limit)
    first = [CircuitBatch(tuple(deletes[at : at + limit]), ()) for at in ranges[0]]
    return first + [CircuitBatch((), tuple(adds[at : at + limit])) for at in ranges[1]]
