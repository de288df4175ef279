"""The names of ports and cross-connects: `7A` is input 7, `9B` is output 9, and `7A-9B` joins them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optical_switch.emulator.crossbar import ends
from optical_switch.emulator.gnmi_target.tables import CROSS_CONNECTS, PORTS, Fields, RowId
from optical_switch.model import Circuit, Port, Side
from optical_switch.printable import printable

_NAME = re.compile(r"([1-9][0-9]{0,4})([AB])")
_SIDES: Mapping[str, Side] = {"A": "in", "B": "out"}
_LETTERS: Mapping[Side, str] = {side: letter for letter, side in _SIDES.items()}


def port_name(port: Port) -> str:
    """Return the name of a port."""
    return f"{port.number}{_LETTERS[port.side]}"


def circuit_id(circuit: Circuit) -> str:
    """Return the id of the cross-connect of a circuit."""
    return "-".join(map(port_name, ends(circuit)))


def cross_connect_row(circuit: Circuit) -> tuple[RowId, Fields]:
    """Return the row of CONFIG_DB that sets a circuit."""
    a_side, b_side = map(port_name, ends(circuit))
    return RowId(CROSS_CONNECTS.name, (circuit_id(circuit),)), {"a_side": a_side, "b_side": b_side}


@dataclass(frozen=True, slots=True)
class PortLayout:
    """The ports of a switch: inputs 1..`inputs` and outputs 1..`outputs`."""

    inputs: int
    outputs: int

    @property
    def ports(self) -> Iterator[Port]:
        """All ports, inputs first."""
        yield from (Port("in", number) for number in range(1, self.inputs + 1))
        yield from (Port("out", number) for number in range(1, self.outputs + 1))

    @property
    def circuits(self) -> Iterator[Circuit]:
        """All possible circuits."""
        for source in range(1, self.inputs + 1):
            yield from (Circuit(source, target) for target in range(1, self.outputs + 1))

    def port(self, name: str) -> Port | None:
        """Return the port of that name, or None if there is none."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        port = Port(_SIDES[found[2]], int(found[1]))
        return port if port.number <= (self.inputs if port.side == "in" else self.outputs) else None

    def row_fault(self, row: RowId, fields: Fields) -> str:
        """Return the fault of a row of CONFIG_DB, as the end of a sentence about it. Empty: none."""
        if row.table == PORTS.name:
            return "" if self.port(row.key[0]) else f"the switch has no port {printable(row.key[0])}: {self._range()}"
        missing = [name for name in ("a_side", "b_side") if name not in fields]
        if missing:
            return f"mandatory leaf {missing[0]} is missing: set a_side and b_side"
        for name, side in (("a_side", "in"), ("b_side", "out")):
            port = self.port(fields[name])
            if port is None or port.side != side:
                return f"{name} cannot be port {printable(fields[name])}: {self._range()}"
        expected = f"{fields['a_side']}-{fields['b_side']}"
        return "" if row.key[0] == expected else f"the id does not match its sides: use {expected}"

    def circuit(self, row: RowId, fields: Fields) -> Circuit | None:
        """Return the circuit of a row of the table of cross-connects, or None if the row is not valid."""
        if self.row_fault(row, fields):
            return None
        a_side, b_side = self.port(fields["a_side"]), self.port(fields["b_side"])
        assert a_side is not None, "the row has been checked"
        assert b_side is not None, "the row has been checked"
        return Circuit(a_side.number, b_side.number)

    def _range(self) -> str:
        return f"it has 1A to {self.inputs}A and 1B to {self.outputs}B"
