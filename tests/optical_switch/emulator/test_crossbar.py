"""The crossbar against a plain dictionary, under any sequence of bulk changes."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from optical_switch.emulator.crossbar import Crossbar, RefusalError
from optical_switch.model import Circuit

INPUTS, OUTPUTS = 4, 3
CIRCUITS = st.builds(Circuit, st.integers(0, INPUTS + 1), st.integers(0, OUTPUTS + 1))
BULK = st.lists(CIRCUITS, max_size=4)


class CrossbarMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.crossbar = Crossbar(INPUTS, OUTPUTS)
        self.model: dict[int, int] = {}

    def expected(self, removed: list[Circuit], added: list[Circuit]) -> dict[int, int] | None:
        """Return the circuits after the change, or None if it must be rejected."""
        after = dict(self.model)
        for circuit in removed:
            if after.get(circuit.input) != circuit.output:
                return None
            del after[circuit.input]
        for circuit in added:
            if not (1 <= circuit.input <= INPUTS and 1 <= circuit.output <= OUTPUTS):
                return None
            if circuit.input in after or circuit.output in after.values():
                return None
            after[circuit.input] = circuit.output
        return after

    @rule(data=st.data(), added=BULK)
    def change(self, data: st.DataObject, added: list[Circuit]) -> None:
        present = [Circuit(*pair) for pair in self.model.items()]
        removed = data.draw(st.lists(st.one_of(CIRCUITS, *([st.sampled_from(present)] if present else [])), max_size=3))
        after = self.expected(removed, added)
        if after is None:
            with pytest.raises(RefusalError):
                self.crossbar.change(removed, added)
        else:
            self.crossbar.change(removed, added)
            self.model = after

    @rule(added=BULK)
    def check_agrees_with_change(self, added: list[Circuit]) -> None:
        if self.expected([], added) is None:
            with pytest.raises(RefusalError):
                self.crossbar.check_change((), added)
        else:
            self.crossbar.check_change((), added)

    @invariant()
    def same_circuits(self) -> None:
        assert dict(self.crossbar.circuits) == self.model
        assert {c.output for c in self.crossbar.circuits} == set(self.model.values())
        for port in range(INPUTS + 2):
            assert self.crossbar.output_of(port) == self.model.get(port)
        for port in range(OUTPUTS + 2):
            assert self.crossbar.input_of(port) == {v: k for k, v in self.model.items()}.get(port)


TestCrossbar = CrossbarMachine.TestCase
TestCrossbar.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
