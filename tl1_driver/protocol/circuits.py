"""Circuits as the lists of TL1 switches have them."""

from __future__ import annotations

from typing import NamedTuple

from optical_switch.model import DARK_BELOW_DBM, Circuit

ENTERED = "entered"
"""The state of a circuit that occupies its ports but passes no signal until it is switched on, or removed."""


class ListedCircuit(NamedTuple):
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
