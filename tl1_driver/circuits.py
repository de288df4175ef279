"""Circuits of an optical switch in plain numbers; dialects map them to the names of the vendor."""

from __future__ import annotations

from typing import Literal, NamedTuple

DARK_BELOW_DBM = -40.0
"""Below this, in dBm, an input has no light: the monitors of a dark port read about -48.5."""

ENTERED = "entered"
"""The state of a circuit that occupies its ports but carries no light until it is switched on, or removed."""


class Circuit(NamedTuple):
    """Light entering at port `input` leaves at port `output`; both count from 1."""

    input: int
    output: int


class Port(NamedTuple):
    """One side of a switch and a number from 1."""

    side: Literal["in", "out"]
    number: int


class CircuitState(NamedTuple):
    """A circuit found on a switch.

    `state` is `steady`, `fault`, `entered` (known to the switch but not switched on) or what the firmware calls it,
    `cause` why; powers are in dBm, None where the switch does not say. `locked` circuits belong to somebody else,
    `owner` if the switch says whom, and are not to be touched.
    """

    input: int
    output: int
    state: str
    input_power: float | None = None
    output_power: float | None = None
    cause: str = ""
    locked: bool = False
    owner: str = ""

    @property
    def made(self) -> bool:
        """Whether light that enters leaves again: false for a circuit that is only entered."""
        return self.state != ENTERED

    @property
    def circuit(self) -> Circuit:
        """The circuit without its state."""
        return Circuit(self.input, self.output)

    @property
    def waits_for_light(self) -> bool:
        """Whether the switch reports a fault only because no light enters: the circuit itself is made."""
        return self.state == "fault" and self.input_power is not None and self.input_power < DARK_BELOW_DBM
