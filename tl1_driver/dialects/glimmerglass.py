"""Glimmerglass System 100 and 300; the Blast paper used a switch of this maker (section V-A) and names no model.

Input n is named 10000+n, output n 20000+n; a connection is known by its ports. Command and row forms are those used by
public clients of these switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from optical_switch.model import Circuit, Port
from optical_switch.session import LightCheckTime
from tl1_driver.dialects.base import Dialect, power
from tl1_driver.protocol.circuits import ListedCircuit
from tl1_driver.protocol.errors import InvalidCommandError, MalformedResponseError
from tl1_driver.protocol.messages import Tl1Command
from tl1_driver.protocol.payload import parameters
from tl1_driver.protocol.procedure import Procedure, all_confirmed, rows
from tl1_driver.protocol.session import Wire

FIRST_INPUT = 10000
FIRST_OUTPUT = 20000
PORTS_PER_SIDE = 9999
"""Port names have five digits, of which the first is the side."""
NOT_CONNECTED = "single"


def _name(base: int, number: int) -> str:
    if not 1 <= number <= PORTS_PER_SIDE:
        raise InvalidCommandError(f"port {number} is outside 1..{PORTS_PER_SIDE}")
    return str(base + number)


def _number(base: int, row: dict[str, str], key: str) -> int | None:
    """Return the port number in `row`, None for the 0 that stands for no port.

    Raises MalformedResponseError if the value is not the name of a port on that side.
    """
    text = row.get(key, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise MalformedResponseError(f"a connection row has no usable {key}: {row}")
    name = int(text)
    if name and not 1 <= name - base <= PORTS_PER_SIDE:
        raise MalformedResponseError(f"a connection row has {key}={name}, which names no such port")
    return name - base if name else None


@dataclass(frozen=True)
class Glimmerglass(Dialect):
    """The dialect of Glimmerglass System 100/300."""

    name: str = "glimmerglass"
    port: int = 10033
    light_check: LightCheckTime = "before_grant"
    wire: Wire = field(default_factory=lambda: Wire(terminator=b";\n"))

    def input_name(self, number: int) -> str:
        """Return 10000 + `number`."""
        return _name(FIRST_INPUT, number)

    def output_name(self, number: int) -> str:
        """Return 20000 + `number`."""
        return _name(FIRST_OUTPUT, number)

    def ports_named(self, aid: str) -> list[Port]:
        """Return the port with this name: 10001 is input 1, 20001 output 1."""
        name = int(aid) if aid.isascii() and aid.isdigit() and len(aid) == 5 else 0
        sides = (Port("in", name - FIRST_INPUT), Port("out", name - FIRST_OUTPUT))
        return [port for port in sides if 1 <= port.number <= PORTS_PER_SIDE]

    def connect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Send `ent-crs-fiber::in&in,out&out:ctag:::opmode=sync;`: sync answers when the mirrors have settled."""
        return all_confirmed(
            self.in_as_few_as_fit(
                circuits, lambda some: Tl1Command("ent-crs-fiber", self._pairs(some), ("", "", "opmode=sync"))
            )
        )

    def disconnect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Send `dlt-crs-fiber::in&in,out&out:ctag;`, which names both ports, so that no other circuit is affected."""
        return all_confirmed(
            self.in_as_few_as_fit(circuits, lambda some: Tl1Command("dlt-crs-fiber", self._pairs(some)))
        )

    def circuits(self) -> Procedure[list[ListedCircuit]]:
        """Read `rtrv-crs-fiber::all:ctag;`: the rows that join two ports."""
        found = map(self._circuit, (yield from self._connection_rows()))
        return [circuit for circuit in found if circuit is not None]

    def powers(self) -> Procedure[dict[Port, float]]:
        """Read `rtrv-crs-fiber::all:ctag;`, which has the powers of every port, connected or not."""
        powers: dict[Port, float] = {}
        for row in (yield from self._connection_rows()):
            source, target = _number(FIRST_INPUT, row, "IPORTID"), _number(FIRST_OUTPUT, row, "OPORTID")
            entering, leaving = power(row.get("INPWR", "")), power(row.get("OUTPWR", ""))
            if source is not None and entering is not None:
                powers[Port("in", source)] = entering
            if target is not None and leaving is not None:
                powers[Port("out", target)] = leaving
        return powers

    def _connection_rows(self) -> Procedure[list[dict[str, str]]]:
        """Read the rows as values by column name, since firmware versions differ in their columns."""
        found = [parameters(line) for line in (yield from rows(Tl1Command("rtrv-crs-fiber", "all")))]
        if not all(found):
            raise MalformedResponseError("the list of connections has a row without any NAME=value")
        return found

    def _pairs(self, circuits: Sequence[Circuit]) -> str:
        inputs = "&".join(self.input_name(circuit.input) for circuit in circuits)
        outputs = "&".join(self.output_name(circuit.output) for circuit in circuits)
        return f"{inputs},{outputs}"

    def _circuit(self, row: dict[str, str]) -> ListedCircuit | None:
        source = _number(FIRST_INPUT, row, "IPORTID")
        target = _number(FIRST_OUTPUT, row, "OPORTID")
        state = row.get("CONNSTATE", "").lower()
        if source is None or target is None or state == NOT_CONNECTED:
            return None
        return ListedCircuit(
            source,
            target,
            state,
            power(row.get("INPWR", "")),
            power(row.get("OUTPWR", "")),
            row.get("CONNCAUSE", "").lower(),
            locked=row.get("CONNLOCK", "0") not in ("", "0"),
            owner=row.get("CONNLOCKUSER", ""),
        )
