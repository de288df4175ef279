"""Ports, circuits and readings of an optical circuit switch, in plain numbers; drivers map them to a device's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

DARK_BELOW_DBM = -40.0
"""Input power in dBm below which an input is dark: the monitors of a dark port read about -48.5."""

Side = Literal["in", "out"]
"""Where light enters ("in") or leaves ("out") the switch."""


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

    side: Side
    number: int


@dataclass(frozen=True, slots=True)
class PortDescription:
    """Description of one side of a port by its device.

    Parameters
    ----------
    port : Port
        The side.
    name : str
        Name on the device, such as `1A` or `10001`.
    label : str
        Text that an operator gave the port. Empty: none.
    duplex : bool
        True if the device has one name for the input and the output of this number.
    """

    port: Port
    name: str
    label: str = ""
    duplex: bool = False


class CircuitState(StrEnum):
    """Progress of a circuit on a switch."""

    ABSENT = "absent"
    """Not set, or known to the device but not switched on: no light passes."""
    TUNING = "tuning"
    """The mirrors still move."""
    CONNECTED = "connected"
    """Light passes."""
    FAILED = "failed"
    """The device could not set it, or lost it."""


@dataclass(frozen=True, slots=True)
class CircuitReading:
    """A circuit in the list of a device.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    state : CircuitState
        Its state.
    cause : str
        Text of the device about a circuit that is not connected. Empty: nothing.
    locked : bool
        True if the circuit belongs to another client and must not be changed.
    owner : str
        The client to which it belongs, if the device names it.
    """

    circuit: Circuit
    state: CircuitState
    cause: str = ""
    locked: bool = False
    owner: str = ""


class PowerReading(NamedTuple):
    """Optical power at a port, in dBm."""

    port: Port
    dbm: float


LOSS_ACCURACY_DB = 0.5
"""Error of a measured loss whose accuracy is not known: within it, SONiC calls a cross-connect `connected`."""


class LossReading(NamedTuple):
    """Measured insertion loss of a circuit through the switch, in dB, and the error of the measurement."""

    circuit: Circuit
    db: float
    accuracy: float = LOSS_ACCURACY_DB


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that a device reports on its own.

    Parameters
    ----------
    port : Port | None
        Port at which it is; None for an element that is not a port.
    name : str
        The device's own name of the element.
    condition : str
        The fault, in the device's words.
    severity : str
        How bad it is, in the device's words.
    cleared : bool
        True if the condition has ended.
    """

    port: Port | None
    name: str
    condition: str
    severity: str = ""
    cleared: bool = False
