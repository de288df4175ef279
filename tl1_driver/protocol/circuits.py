"""Circuits of an optical switch in plain numbers; dialects map them to the vendor's names."""

from __future__ import annotations

from typing import Literal, NamedTuple

DARK_BELOW_DBM = -40.0
"""Input power in dBm below which an input is dark: the monitors of a dark port read about -48.5."""

ENTERED = "entered"
"""The state of a circuit that occupies its ports but passes no signal until it is switched on, or removed."""


class Circuit(NamedTuple):
    """A one-way circuit through a switch.

    Parameters
    ----------
    input : int
        Number of the input port, from 1.
    output : int
        Number of the output port, from 1.
    """

    input: int
    output: int


class Port(NamedTuple):
    """One side of a port of a switch.

    Parameters
    ----------
    side : Literal["in", "out"]
        Side at which light enters ("in") or leaves ("out") the switch.
    number : int
        Number of the port, from 1.
    """

    side: Literal["in", "out"]
    number: int


class CircuitState(NamedTuple):
    """A circuit found on a switch.

    `state` is `steady`, `fault`, `entered` (known to the switch but not switched on) or the name that the firmware
    uses, `cause` the reason; powers are in dBm, None if the switch does not report them. `locked` circuits belong to
    another client, `owner` if the switch names it, and must not be changed.
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
        """True if the circuit passes light; False for a circuit that is only entered."""
        return self.state != ENTERED

    @property
    def circuit(self) -> Circuit:
        """The circuit without its state."""
        return Circuit(self.input, self.output)

    @property
    def waits_for_light(self) -> bool:
        """True if the switch reports a fault only because its input is dark: the circuit itself is set."""
        return self.state == "fault" and self.input_power is not None and self.input_power < DARK_BELOW_DBM
