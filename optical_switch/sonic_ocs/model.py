"""Names and values of the model `sonic-ocs`, revision 2024-11-21 and its drafts. Pure.

Each port has two sides that carry light one way: light enters the switch at `7A`, which is input 7, and leaves it at
`9B`, which is output 9. The cross-connect `7A-9B` joins them. Configuration is in CONFIG_DB, state in STATE_DB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Literal

from optical_switch.errors import ProtocolError, SwitchUsageError
from optical_switch.model import Circuit, CircuitState, Port
from optical_switch.printable import printable

Origin = Literal["databases", "yang"]
"""Addresses of the model in gNMI: by the databases of SONiC, or by the module `sonic-ocs`."""

CONFIG_DB = "CONFIG_DB"
STATE_DB = "STATE_DB"

PORT_CONFIG = "OCS_PORT"
CROSS_CONNECT_CONFIG = "OCS_CROSS_CONNECT"
PORT_TABLE = "OCS_PORT_TABLE"
CROSS_CONNECT_TABLE = "OCS_CROSS_CONNECT_TABLE"
FACTORY_TABLE = "OCS_FACTORY_INSERTION_LOSS_TABLE"
CONFIG_TABLES = frozenset([PORT_CONFIG, CROSS_CONNECT_CONFIG])
"""Tables of CONFIG_DB; the others are in STATE_DB."""

KEY_LEAVES = {
    PORT_CONFIG: "simplex_port_id",
    CROSS_CONNECT_CONFIG: "cross_connect_id",
    PORT_TABLE: "simplex_port_id",
    CROSS_CONNECT_TABLE: "cross_connect_id",
    FACTORY_TABLE: "cross_connect_id",
}
"""Tables that the driver uses, each with the leaf that is its key, or the first part of it."""

LABEL = "label"
TARGET = "target_simplex_port_id"
LOSS = "insertion_loss_dB"
ACCURACY = "accuracy_dB"
PORT_STATUS_COLUMNS = ("oper_status", "state")
CROSS_CONNECT_STATUS_COLUMNS = ("status", "state", "config_status")
"""The column of the model, then those of its drafts: the first one that a row has counts."""

READ_COLUMNS: Mapping[str, tuple[str, ...]] = {
    PORT_CONFIG: (LABEL,),
    PORT_TABLE: (*PORT_STATUS_COLUMNS, TARGET),
    CROSS_CONNECT_TABLE: (*CROSS_CONNECT_STATUS_COLUMNS, LOSS),
    FACTORY_TABLE: (ACCURACY,),
}
"""Columns that the driver reads; it ignores all others."""

MAX_PORT = 4096
"""Largest number of a port: seven times the largest switch on the market, which has 576."""
MAX_CROSS_CONNECTS = 2 * MAX_PORT
"""Rows of cross-connects that are kept: one for each port, and as many invalid ones."""
MAX_VALUE_CHARACTERS = 128
"""Length of a value of a row: the longest that is known is a label."""
MAX_LOSS_DB = 100.0
"""A larger loss is no measurement: a dark port reads about 40 dB less than a lit one."""

_NAME = re.compile(r"([1-9][0-9]{0,3})([AB])", re.ASCII)
_IDENTIFIER = re.compile(r"([1-9][0-9]{0,3}A)-([1-9][0-9]{0,3}B)", re.ASCII)
_NAMED = re.compile(
    r"(?<![0-9A-Za-z])(?:([1-9][0-9]{0,3}A)-([1-9][0-9]{0,3}B)|[1-9][0-9]{0,3}[AB])(?![0-9A-Za-z])", re.ASCII
)
_SIDES = {"in": "A", "out": "B"}
_NOT_MEASURED = frozenset(["", "N/A"])


class OcsPortStatus(StrEnum):
    """`oper_status` of one side of a port."""

    POWERED_OFF = "powered_off"
    BLOCKED = "blocked"
    TUNING = "tuning"
    CONNECTED = "connected"
    FAILED = "failed"


class OcsCrossConnectStatus(StrEnum):
    """`status` of a cross-connect."""

    DISABLED = "disabled"
    ENABLED = "enabled"
    INVALID = "invalid"


_PORT_STATUSES = {status.value: status for status in OcsPortStatus} | {"tuned": OcsPortStatus.CONNECTED}
_CROSS_CONNECT_STATUSES = {status.value: status for status in OcsCrossConnectStatus}


def port_name(port: Port) -> str:
    """Return the device's name of one side of a port.

    >>> port_name(Port("out", 9))
    '9B'
    """
    return f"{port.number}{_SIDES[port.side]}"


def port_of(name: str) -> Port:
    """Return the side of a port that has this name. Raises ProtocolError for any other text."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) > MAX_PORT:
        raise ProtocolError(f"the switch names a port {printable(name)!r}: expected 1A or 1B up to {MAX_PORT}B")
    return Port("in" if found[2] == "A" else "out", int(found[1]))


def cross_connect_id(circuit: Circuit) -> str:
    """Return the device's name of a circuit.

    >>> cross_connect_id(Circuit(7, 9))
    '7A-9B'
    """
    return "-".join(sides_of(circuit))


def sides_of(circuit: Circuit) -> tuple[str, str]:
    """Return the names of the A side and the B side of a circuit."""
    return port_name(Port("in", circuit.input)), port_name(Port("out", circuit.output))


def circuit_of(identifier: str) -> Circuit:
    """Return the circuit that has this name. Raises ProtocolError for any other text."""
    found = _IDENTIFIER.fullmatch(identifier)
    if found is None:
        text = printable(identifier)
        raise ProtocolError(f"the switch names a cross-connect {text!r}: expected an A side and a B side, as in 1A-68B")
    return Circuit(port_of(found[1]).number, port_of(found[2]).number)


def check_circuit(circuit: Circuit) -> None:
    """Raise SwitchUsageError for a circuit with a port that no device can have."""
    if not (1 <= circuit.input <= MAX_PORT and 1 <= circuit.output <= MAX_PORT):
        raise SwitchUsageError(
            f"input {circuit.input} to output {circuit.output}: ports are numbered from 1 to {MAX_PORT}"
        )


def names_in(text: str) -> Iterator[Circuit | Port]:
    """Yield the circuits and ports that a text of the device names, in order.

    >>> list(names_in("7A-9B: port 9B is in use"))
    [Circuit(input=7, output=9), Port(side='out', number=9)]
    """
    for found in _NAMED.finditer(text):
        try:
            yield circuit_of(found[0]) if found[1] else port_of(found[0])
        except ProtocolError:
            continue


def port_status(row: Mapping[str, str]) -> OcsPortStatus:
    """Return the status in a row of `OCS_PORT_TABLE`. Raises ProtocolError if it is unknown."""
    text = _first(row, PORT_STATUS_COLUMNS, OcsPortStatus.BLOCKED)
    if text not in _PORT_STATUSES:
        raise ProtocolError(f"the switch reports the port status {printable(text)!r}, which the model sonic-ocs lacks")
    return _PORT_STATUSES[text]


def cross_connect_status(row: Mapping[str, str]) -> OcsCrossConnectStatus:
    """Return the status in a row of `OCS_CROSS_CONNECT_TABLE`. Raises ProtocolError if it is unknown."""
    text = _first(row, CROSS_CONNECT_STATUS_COLUMNS, OcsCrossConnectStatus.DISABLED)
    if text not in _CROSS_CONNECT_STATUSES:
        raise ProtocolError(
            f"the switch reports the cross-connect status {printable(text)!r}, which the model sonic-ocs lacks"
        )
    return _CROSS_CONNECT_STATUSES[text]


def insertion_loss(row: Mapping[str, str]) -> float | None:
    """Return the loss in a row of `OCS_CROSS_CONNECT_TABLE` in dB, or None. Raises ProtocolError if it is no number."""
    return _decibels(row, LOSS)


def accuracy(row: Mapping[str, str]) -> float | None:
    """Return the accuracy in a row of `FACTORY_TABLE` in dB, or None. Raises ProtocolError if it is no number."""
    found = _decibels(row, ACCURACY)
    if found is not None and found < 0:
        raise ProtocolError(f"the switch reports {ACCURACY} {found:g}: expected no negative number")
    return found


def circuit_state(
    circuit: Circuit, row: Mapping[str, str], ports: Mapping[Port, Mapping[str, str]]
) -> tuple[CircuitState, str]:
    """Return how far a circuit is, and why it is not connected.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    row : Mapping[str, str]
        Its row of `OCS_CROSS_CONNECT_TABLE`.
    ports : Mapping[Port, Mapping[str, str]]
        The rows of `OCS_PORT_TABLE`.

    Returns
    -------
    tuple[CircuitState, str]
        The state, and the cause: empty if it is connected.

    Raises
    ------
    ProtocolError
        If a status is unknown.
    """
    status = cross_connect_status(row)
    if status is OcsCrossConnectStatus.INVALID:
        return CircuitState.FAILED, f"the switch reports {cross_connect_id(circuit)} as invalid"
    sides = Port("in", circuit.input), Port("out", circuit.output)
    causes = {}
    for port, peer in zip(sides, reversed(sides), strict=True):
        port_row = ports.get(port, {})
        side_status = port_status(port_row)
        if side_status is OcsPortStatus.FAILED:
            return CircuitState.FAILED, f"the switch reports {port_name(port)} as failed"
        # Until the switch acts on a new cross-connect, a port may still be connected to its previous peer.
        if port_row.get(TARGET, "") not in {"", port_name(peer)}:
            causes[port] = f"the switch still targets {printable(port_row[TARGET])} from {port_name(port)}"
        elif side_status is not OcsPortStatus.CONNECTED:
            causes[port] = f"the switch reports {port_name(port)} as {side_status}"
    if status is OcsCrossConnectStatus.DISABLED:
        return CircuitState.TUNING, f"the switch reports {cross_connect_id(circuit)} as disabled"
    if causes:
        return CircuitState.TUNING, next(iter(causes.values()))
    return CircuitState.CONNECTED, ""


def _decibels(row: Mapping[str, str], column: str) -> float | None:
    text = row.get(column, "")
    if text in _NOT_MEASURED:  # SONiC writes N/A in its databases for a value that it does not have.
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) <= MAX_LOSS_DB:
        raise ProtocolError(f"the switch reports {column} {printable(text)!r}: expected a number of dB")
    return number


def _first(row: Mapping[str, str], columns: tuple[str, ...], default: str) -> str:
    return next((row[column] for column in columns if column in row), default)
