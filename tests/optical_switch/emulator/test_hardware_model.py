"""The emulated hardware against a brute-force model, under any sequence of changes, faults and broken light paths."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit, CircuitReading, CircuitState, Port
from tests.support.emulated_hardware import PORTS, HandClock, RecordedPaths, hardware_of, set_all

NUMBERS = st.integers(1, PORTS)
CIRCUITS = st.builds(Circuit, NUMBERS, NUMBERS)
ANY_CIRCUIT = st.builds(Circuit, st.integers(0, PORTS + 1), st.integers(0, PORTS + 1))
MOMENT = 1e-6
"""Seconds: less than the clock moves at once."""
FEW = st.sets(NUMBERS, max_size=1)


@dataclass(frozen=True)
class Step:
    """A change, and the faults that are injected meanwhile; without light paths, setting them fails."""

    kind: str
    added: list[Circuit]
    removed: list[Circuit]
    refused_inputs: set[int] = field(default_factory=set)
    stuck_inputs: set[int] = field(default_factory=set)
    dead_outputs: set[int] = field(default_factory=set)
    partial: bool = False
    paths_fail: bool = False


STEPS = st.builds(
    Step,
    st.sampled_from(["bulk", "bulk", "bulk", "disconnect", "disconnect", "hand", "reset"]),
    st.lists(st.one_of(CIRCUITS, CIRCUITS, ANY_CIRCUIT), max_size=4),
    st.lists(CIRCUITS, max_size=2),
    FEW,
    FEW,
    FEW,
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)


@dataclass(frozen=True)
class BruteForce:
    """The lit circuits and the failed ones, as lists that are searched."""

    lit: tuple[Circuit, ...] = ()
    failed: tuple[Circuit, ...] = ()

    def allows(self, step: Step, added: Sequence[Circuit]) -> bool:
        left = [*self.lit, *self.failed]
        for circuit in step.removed:
            if circuit not in left:
                return False
            if circuit in self.lit:
                left.remove(circuit)
        left = [circuit for circuit in left if circuit not in self.failed]
        for circuit in added:
            exists = circuit.input in range(1, PORTS + 1) and circuit.output in range(1, PORTS + 1)
            if not exists or circuit.input in step.refused_inputs:
                return False
            if any(circuit.input == other.input or circuit.output == other.output for other in left):
                return False
            left.append(circuit)
        return True


@dataclass(frozen=True)
class Outcome:
    """State after a step, whether a part was refused, and whether light paths had to be set."""

    state: BruteForce
    refused: bool
    moved: bool


def outcome(before: BruteForce, step: Step) -> Outcome:
    """Return the outcome of a step if the light paths work."""
    if step.kind == "reset":
        return Outcome(BruteForce(), refused=False, moved=True)
    refused, added = not before.allows(step, step.added), list(step.added)
    if refused:
        if not step.partial or not before.allows(step, []):
            return Outcome(before, refused=True, moved=False)
        while not before.allows(step, added):
            added.pop()
    failing = [c for c in added if c.input in step.stuck_inputs or c.output in step.dead_outputs]
    if failing and step.kind == "hand":
        return Outcome(before, refused=True, moved=False)
    new = [circuit for circuit in added if circuit not in failing]
    lit = (*(c for c in before.lit if c not in step.removed), *new)
    touched = [(c.input, c.output) for c in added]
    failed = (
        *(
            old for old in before.failed
            if old not in step.removed and not any(old.input == i or old.output == o for i, o in touched)
        ),
        *failing,
    )  # fmt: skip
    moved = bool(new) or any(circuit in before.lit for circuit in step.removed)
    return Outcome(BruteForce(lit, failed), refused or bool(failing), moved)


async def carry_out(hardware: OpticalHardware, step: Step) -> bool:
    """Carry out a step, and return True if anything was refused or failed."""
    planned: list[CrossbarChange] = []
    outcomes: list[RefusalError | None] = []

    def plan() -> CrossbarChange:
        if step.kind == "disconnect":
            change = hardware.disconnecting(step.removed)
        else:
            change = hardware.connecting(step.added, step.removed)
        planned.append(replace(change, done=outcomes.append))
        return planned[0]

    refused = False
    try:
        if step.kind == "reset":
            await hardware.reset()
        elif step.kind == "hand":
            await hardware.connect_by_hand(step.added[0])
        else:
            await (await hardware.plan_and_set(plan))
    except (RefusalError, OSError):
        refused = True
    assert [outcome is not None for outcome in outcomes] == [refused] * len(planned), "done is called once, in the end"
    return refused


def shaped(step: Step) -> Step:
    """Return the step without what its kind does not have."""
    if step.kind == "disconnect":
        return replace(step, added=[], partial=False)
    if step.kind == "hand":
        return replace(step, added=[*step.added, Circuit(1, 1)][:1], removed=[], refused_inputs=set(), partial=False)
    return step


async def check(steps: Sequence[Step]) -> None:
    paths, model = RecordedPaths(), BruteForce()
    hardware = hardware_of(paths)
    for step in map(shaped, steps):
        faults = hardware.faults
        faults.refused_inputs, faults.stuck_inputs, faults.partial_bulk = (
            step.refused_inputs,
            step.stuck_inputs,
            step.partial,
        )
        faults.dead_ports = {Port("out", number) for number in step.dead_outputs}
        paths.error = OSError("no such interface") if step.paths_fail else None
        expected = outcome(model, step)
        if step.paths_fail and expected.moved:
            expected = Outcome(model, refused=True, moved=False)
        assert await carry_out(hardware, step) == expected.refused
        model = expected.state
        assert set(hardware.crossbar.circuits) == set(model.lit) == paths.lit
        faults.dead_ports = set()
        assert {(r.circuit, r.state) for r in hardware.readings()} == {
            *((circuit, CircuitState.CONNECTED) for circuit in model.lit),
            *((circuit, CircuitState.FAILED) for circuit in model.failed),
        }
        assert not hardware.busy and not hardware.tuning


@given(st.lists(STEPS, min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_hardware_agrees_with_brute_force_model(steps: list[Step]) -> None:
    asyncio.run(check(steps))


async def check_lag(bulks: Sequence[tuple[list[Circuit], bool, float]]) -> None:
    clock = HandClock()
    hardware = hardware_of(RecordedPaths(), clock, connect_seconds=0.5)
    seen: list[tuple[float, list[CircuitReading]]] = [(clock.time, [])]
    hardware.listeners.append(lambda: seen.append((clock.time, hardware.readings())))
    for circuits, stuck, pause in bulks:
        hardware.faults.stuck_inputs = {circuits[0].input} if stuck else set()
        blocking = [c for c in hardware.circuits if any(c[0] == new[0] or c[1] == new[1] for new in circuits)]
        if len({c.input for c in circuits}) == len({c.output for c in circuits}) == len(circuits):
            try:
                await set_all(hardware, circuits, removed=blocking)
            except RefusalError as refusal:
                assert stuck, refusal
        clock.time += pause
    # Of several readings at one instant, the list shows the last one after it.
    instants = list(dict(seen).items())

    def late(seconds: float) -> list[CircuitReading]:
        hardware._table._history._shown = 0  # as if no list had been read before
        hardware.faults.late_list = seconds
        return hardware.readings()

    for (_, before), (time, after) in pairwise(instants):
        assert clock.time - time < MOMENT or late(clock.time - time - MOMENT) == after
        tuning = [reading for reading in before if reading.state is CircuitState.TUNING]
        assert all(reading in late(clock.time - time + MOMENT) for reading in tuning)


@given(st.lists(st.tuples(st.lists(CIRCUITS, min_size=1, max_size=3), st.booleans(), st.floats(0.1, 5)), max_size=8))
@settings(max_examples=100, deadline=None)
def test_late_list_equals_earlier_list(bulks: list[tuple[list[Circuit], bool, float]]) -> None:
    asyncio.run(check_lag(bulks))
