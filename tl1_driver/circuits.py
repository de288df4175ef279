"""Circuits of an optical switch in plain numbers; dialects map them to the names of the vendor."""

from __future__ import annotations

from typing import NamedTuple

DARK_BELOW_DBM = -40.0
"""Below this, in dBm, an input has no light: the monitors of a dark port read about -48.5."""


class Circuit(NamedTuple):
    """Light entering at port `input` leaves at port `output`; both count from 1."""

    input: int
    output: int


class CircuitState(NamedTuple):
    """A circuit found on a switch.

    `state` is `steady` or `fault` (or what the firmware calls it), `cause` why; powers are in dBm, None where the
    switch does not say. `locked` circuits belong to somebody else and are not to be touched.
    """

    input: int
    output: int
    state: str
    input_power: float | None = None
    output_power: float | None = None
    cause: str = ""
    locked: bool = False

    @property
    def circuit(self) -> Circuit:
        """The circuit without its state."""
        return Circuit(self.input, self.output)

    @property
    def waits_for_light(self) -> bool:
        """Whether the switch reports a fault only because no light enters: the circuit itself is made."""
        return self.state == "fault" and self.input_power is not None and self.input_power < DARK_BELOW_DBM
