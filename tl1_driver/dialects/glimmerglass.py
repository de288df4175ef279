"""Glimmerglass System 100 and 300, the switch of the Blast paper (section V).

Input n is named 10000+n, output n 20000+n; a connection is known by its ports. Command and row forms are those used by
public clients of these switches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tl1_driver.circuits import Circuit, CircuitState
from tl1_driver.dialects.base import Dialect
from tl1_driver.errors import InvalidCommand, MalformedAnswer
from tl1_driver.messages import Command
from tl1_driver.payload import parameters
from tl1_driver.session import Wire

FIRST_INPUT = 10000
FIRST_OUTPUT = 20000
PORTS_PER_SIDE = 9999
NOT_CONNECTED = "single"


def _name(base: int, number: int) -> str:
    if not 1 <= number <= PORTS_PER_SIDE:
        raise InvalidCommand(f"port {number} is outside 1..{PORTS_PER_SIDE}")
    return str(base + number)


def _number(base: int, row: dict[str, str], key: str) -> int | None:
    """The port number in `row`, None for the 0 that stands for no port."""
    text = row.get(key, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise MalformedAnswer(f"a connection row has no usable {key}: {row}")
    name = int(text)
    if name and not 1 <= name - base <= PORTS_PER_SIDE:
        raise MalformedAnswer(f"a connection row has {key}={name}, which names no such port")
    return name - base if name else None


def _power(row: dict[str, str], key: str) -> float | None:
    try:
        power = float(row[key])
    except (KeyError, ValueError):
        return None
    return power if math.isfinite(power) else None


@dataclass(frozen=True)
class Glimmerglass(Dialect):
    """The dialect of Glimmerglass System 100/300."""

    name: str = "glimmerglass"
    port: int = 10033
    wire: Wire = field(default_factory=lambda: Wire(terminator=b";\n"))

    def input_name(self, number: int) -> str:
        """10000 + `number`."""
        return _name(FIRST_INPUT, number)

    def output_name(self, number: int) -> str:
        """20000 + `number`."""
        return _name(FIRST_OUTPUT, number)

    def connect(self, circuits: Sequence[Circuit]) -> list[Command]:
        """`ent-crs-fiber::in&in,out&out:ctag:::opmode=sync;`: sync answers when the mirrors have settled."""
        return self.in_as_few_as_fit(
            circuits, lambda some: Command("ent-crs-fiber", self._pairs(some), ("", "", "opmode=sync"))
        )

    def disconnect(self, circuits: Sequence[Circuit]) -> list[Command]:
        """`dlt-crs-fiber::in&in,out&out:ctag;`: both ports are named, so that no other circuit can be hit."""
        return self.in_as_few_as_fit(circuits, lambda some: Command("dlt-crs-fiber", self._pairs(some)))

    def list_circuits(self) -> Command:
        """`rtrv-crs-fiber::all:ctag;`."""
        return Command("rtrv-crs-fiber", "all")

    def read_circuits(self, lines: Sequence[str]) -> list[CircuitState]:
        """The rows that join two ports, read by name, since firmware versions differ in their columns."""
        rows = [parameters(line) for line in lines if not line.startswith("/*")]
        if not all(rows):
            raise MalformedAnswer("the list of connections has a row without any NAME=value")
        return [circuit for circuit in map(self._circuit, rows) if circuit is not None]

    def _pairs(self, circuits: Sequence[Circuit]) -> str:
        inputs = "&".join(self.input_name(circuit.input) for circuit in circuits)
        outputs = "&".join(self.output_name(circuit.output) for circuit in circuits)
        return f"{inputs},{outputs}"

    def _circuit(self, row: dict[str, str]) -> CircuitState | None:
        source = _number(FIRST_INPUT, row, "IPORTID")
        target = _number(FIRST_OUTPUT, row, "OPORTID")
        state = row.get("CONNSTATE", "").lower()
        if source is None or target is None or state == NOT_CONNECTED:
            return None
        return CircuitState(
            source,
            target,
            state,
            _power(row, "INPWR"),
            _power(row, "OUTPWR"),
            row.get("CONNCAUSE", "").lower(),
            locked=row.get("CONNLOCK", "0") not in ("", "0"),
        )
