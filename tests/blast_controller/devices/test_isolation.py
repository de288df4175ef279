"""Batches that carry out changes, against switches that refuse some circuits, name them or not, and do parts."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.optical.isolation import CONFLICT, ChangeProcedure, CircuitBatch, StepKey, key_of
from optical_switch.errors import RefusedError
from optical_switch.model import Circuit
from optical_switch.session import BatchResult, Capabilities

PORTS = 8


@dataclass
class RefusingSwitch:
    """A switch that refuses circuits in `bad` and removals in `locked`, and circuits whose ports are in use."""

    capabilities: Capabilities
    bad: frozenset[Circuit] = frozenset()
    locked: frozenset[Circuit] = frozenset()
    names: bool = False
    circuits: set[Circuit] = field(default_factory=set)
    batches: list[CircuitBatch] = field(default_factory=list)

    def apply(self, batch: CircuitBatch) -> BatchResult:
        """Do a batch, or refuse it as a whole: after the circuits before the refused one unless it is atomic."""
        self.batches.append(batch)
        before = set(self.circuits)
        for circuit in batch.deletes:
            if circuit not in self.circuits or circuit in self.locked:
                return self._refuse(circuit, before)
            self.circuits.remove(circuit)
        for circuit in batch.adds:
            taken = any(c.input == circuit.input or c.output == circuit.output for c in self.circuits)
            if taken or circuit in self.bad:
                return self._refuse(circuit, before)
            self.circuits.add(circuit)
        return BatchResult()

    def _refuse(self, circuit: Circuit, before: set[Circuit]) -> BatchResult:
        if self.capabilities.atomic:
            self.circuits = before
        error = RefusedError("NO", f"{circuit.input} to {circuit.output}")
        return BatchResult({circuit: error} if self.names else {}, error)

    def carry_out(self, changes: Sequence[CircuitChange]) -> dict[StepKey, str | None]:
        """Return the answers; check that each change has exactly one."""
        answers: dict[StepKey, str | None] = {}

        def answer(change: CircuitChange, refusal: str | None) -> None:
            assert key_of(change) not in answers
            answers[key_of(change)] = refusal

        steps = ChangeProcedure(self.capabilities, answer, str).run(changes)
        with contextlib.suppress(StopIteration):
            step = next(steps)
            while True:
                step = steps.send(self.apply(step) if isinstance(step, CircuitBatch) else frozenset(self.circuits))
        assert answers.keys() == {key_of(change) for change in changes}
        return answers


def connects(*circuits: tuple[int, int]) -> tuple[CrossConnect, ...]:
    return tuple(CrossConnect("ocs1", *circuit) for circuit in circuits)


MANY = [CircuitChange(n, 1, (), connects((n, n))) for n in range(1, 65)]


@pytest.mark.parametrize("atomic", [True, False])
def test_64_circuits_take_one_transaction(atomic: bool) -> None:
    switch = RefusingSwitch(Capabilities(atomic=atomic))
    assert set(switch.carry_out(MANY).values()) == {None}
    assert len(switch.batches) == 1


@pytest.mark.parametrize("bad", [1, 17, 64])
def test_named_circuit_costs_up_to_two_more_transactions(bad: int) -> None:
    switch = RefusingSwitch(Capabilities(), frozenset({Circuit(bad, bad)}), names=True)
    answers = switch.carry_out(MANY)
    assert [key for key, refusal in answers.items() if refusal] == [(bad, 1)]
    assert len(switch.batches) <= 3


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("bad", range(1, 65, 9))
def test_unnamed_circuit_is_found_by_halving(bad: int, atomic: bool) -> None:
    switch = RefusingSwitch(Capabilities(atomic=atomic), frozenset({Circuit(bad, bad)}))
    answers = switch.carry_out(MANY)
    assert [key for key, refusal in answers.items() if refusal] == [(bad, 1)]
    assert switch.circuits == {Circuit(n, n) for n in range(1, 65)} - {Circuit(bad, bad)}
    assert len(switch.batches) <= 1 + 2 * log2(len(MANY))


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("one_transaction", [True, False])
def test_circuit_that_stays_fails_the_changes_that_need_its_ports(names: bool, one_transaction: bool) -> None:
    locked = Circuit(1, 1)
    capabilities = Capabilities(one_transaction=one_transaction)
    switch = RefusingSwitch(capabilities, locked=frozenset({locked}), names=names, circuits={locked, Circuit(2, 2)})
    answers = switch.carry_out(
        [
            CircuitChange(1, 2, connects((1, 1), (2, 2))),
            CircuitChange(2, 1, (), connects((1, 3)), after=frozenset({1})),
            CircuitChange(3, 1, (), connects((4, 4))),
        ]
    )
    assert answers == {(1, 2): "NO: 1 to 1", (2, 1): CONFLICT, (3, 1): None}
    assert switch.circuits == {locked, Circuit(4, 4)}, "the other circuit of the first change is removed"


def test_circuit_that_another_change_gives_up_is_set_again() -> None:
    switch = RefusingSwitch(Capabilities(), frozenset({Circuit(5, 5)}), circuits={Circuit(1, 1)})
    answers = switch.carry_out(
        [
            CircuitChange(1, 2, connects((1, 1))),
            CircuitChange(2, 1, (), connects((1, 1)), after=frozenset({1})),
            CircuitChange(3, 1, (), connects((5, 5))),
        ]
    )
    assert answers == {(1, 2): None, (2, 1): None, (3, 1): "NO: 5 to 5"}
    assert switch.circuits == {Circuit(1, 1)}


def test_batches_stay_within_the_limit_of_the_switch() -> None:
    switch = RefusingSwitch(Capabilities(batch_size=10))
    wide = CircuitChange(99, 1, (), connects(*((n, n) for n in range(65, 90))))
    assert set(switch.carry_out([*MANY, wide]).values()) == {None}
    assert max(len(batch.deletes) + len(batch.adds) for batch in switch.batches) == 10
    assert len(switch.batches) == 7 + 3
    assert [c for batch in switch.batches for c in batch.adds] == [Circuit(n, n) for n in range(1, 90)], "in order"


def test_circuit_that_is_missing_anyway_counts_as_removed() -> None:
    switch = RefusingSwitch(Capabilities(atomic=False, one_transaction=False), circuits={Circuit(1, 1)})
    answers = switch.carry_out([CircuitChange(1, 2, connects((1, 1), (2, 2))), CircuitChange(2, 2, connects((3, 3)))])
    assert answers == {(1, 2): None, (2, 2): None}
    assert switch.circuits == set()


def permuted(draw: st.DrawFn, label: str) -> list[Circuit]:
    outputs = draw(st.permutations(range(1, PORTS + 1)), label=label)
    return [Circuit(n, output) for n, output in enumerate(outputs, 1)]


@st.composite
def workloads(draw: st.DrawFn) -> tuple[RefusingSwitch, list[CircuitChange]]:
    """Return a switch with circuits, and changes as the core makes them: no port is given to two at a time."""
    present = [c for c in permuted(draw, "present") if draw(st.booleans())]
    removed = [c for c in present if draw(st.booleans())]
    kept = {c for c in present if c not in removed}
    used = {c.input for c in kept}, {c.output for c in kept}
    requested = [c for c in permuted(draw, "requested") if c.input not in used[0] and c.output not in used[1]]
    absent = [Circuit(n + PORTS, n + PORTS) for n in range(1, 3) if draw(st.booleans())]
    count = draw(st.integers(1, 4))
    share = [[(draw(st.integers(0, count - 1)), c) for c in some] for some in (removed + absent, requested)]
    freed = {port: 10 + owner for owner, c in share[0] for port in (("in", c.input), ("out", c.output))}
    changes = [
        CircuitChange(10 + owner, 2, tuple(CrossConnect("ocs1", *c) for by, c in share[0] if by == owner))
        for owner in range(count)
    ]
    for owner in range(count):
        own = [c for by, c in share[1] if by == owner]
        after = {freed[end] for c in own for end in (("in", c.input), ("out", c.output)) if end in freed}
        connect = tuple(CrossConnect("ocs1", *c) for c in own)
        changes.append(CircuitChange(20 + owner, 1, (), connect, after=frozenset(after)))
    some = lambda circuits: frozenset(c for c in circuits if draw(st.integers(0, 5)) == 0)  # noqa: E731
    capabilities = Capabilities(
        batch_size=draw(st.sampled_from([None, 1, 3])),
        one_transaction=draw(st.booleans()),
        atomic=draw(st.booleans()),
    )
    switch = RefusingSwitch(capabilities, some(requested), some(removed), draw(st.booleans()), set(present))
    return switch, changes


@given(workloads())
def test_every_change_is_done_or_refused_for_a_reason_of_its_own(
    workload: tuple[RefusingSwitch, list[CircuitChange]],
) -> None:
    """A change fails if a circuit of its own is refused, or if it needs a port that is not freed."""
    switch, changes = workload
    stuck = {
        change.reservation
        for change in changes
        if any(Circuit(c.input, c.output) in switch.locked for c in change.disconnect)
    }
    expected = {
        key_of(change): change.reservation in stuck
        or not stuck.isdisjoint(change.after)
        or any(Circuit(c.input, c.output) in switch.bad for c in change.connect)
        for change in changes
    }
    answers = switch.carry_out(changes)
    assert {key: refusal is not None for key, refusal in answers.items()} == expected
    for change in changes:
        circuits = {Circuit(c.input, c.output) for c in change.connect}
        if not expected[key_of(change)]:
            assert circuits <= switch.circuits
        removed = {Circuit(c.input, c.output) for c in change.disconnect} - switch.locked
        set_again = {Circuit(c.input, c.output) for other in changes for c in other.connect}
        assert (removed - set_again).isdisjoint(switch.circuits), "all that can be removed is removed"
