"""HUBER+SUHNER Polatis: inputs 1..N, outputs N+1..N+M; a connection is identified by its ports.

Public drivers of these switches disagree: one writes `input,output` and leaves the TID empty, another writes
`output,input` and sends the switch's name in quotes as TID. Both are settings here. No bulk command is known: patches
are entered one by one, and then read back, which also reveals a switch that swapped input and output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from optical_switch.model import Circuit, Port
from optical_switch.session import LightCheckTime
from tl1_driver.dialects.base import Dialect, power
from tl1_driver.protocol.circuits import ListedCircuit
from tl1_driver.protocol.errors import (
    CommandWithheldError,
    InvalidCommandError,
    MalformedResponseError,
)
from tl1_driver.protocol.messages import Tl1Command
from tl1_driver.protocol.payload import parameters, quote, unquote
from tl1_driver.protocol.procedure import Procedure, all_confirmed, answer, rows

_SIZE = re.compile(r"([0-9]{1,5})[xX]([0-9]{1,5})")
_PATCH = re.compile(r"([0-9]{1,5})\s*,\s*([0-9]{1,5})")
_POWER = re.compile(r"([0-9]{1,5})\s*:\s*([^\s,]+).*", re.DOTALL)
_STEADY = "steady"


@dataclass(frozen=True)
class Polatis(Dialect):
    """The dialect of Polatis switches. Size and TID are queried unless they are given.

    `output_first` writes a patch as `output,input`. With `quoted_tid` commands carry the switch's own name, `tid`.
    """

    name: str = "polatis"
    port: int = 3082
    light_check: LightCheckTime = "off"
    confirms: bool = False
    inputs: int = 0
    outputs: int = 0
    output_first: bool = False
    quoted_tid: bool = False
    tid: str = ""

    def input_name(self, number: int) -> str:
        """Return `number` itself."""
        return _within(number, self.inputs)

    def output_name(self, number: int) -> str:
        """Return the number of inputs plus `number`."""
        return str(self.inputs + int(_within(number, self.outputs)))

    def ports_named(self, aid: str) -> list[Port]:
        """Return inputs for 1..N, outputs above."""
        number = int(aid) if aid.isascii() and aid.isdigit() and len(aid) <= 5 else 0
        return [self._port(number)] if 1 <= number <= self.inputs + self.outputs else []

    def introduce(self) -> Procedure[Dialect]:
        """Read the size by `RTRV-EQPT::SYSTEM:ctag:::PARAMETER=SIZE;`, and the name from the header of its answer."""
        if self.inputs and self.outputs and (self.tid or not self.quoted_tid):
            return self
        size = yield from answer(Tl1Command("RTRV-EQPT", "SYSTEM", ("", "", "PARAMETER=SIZE")))
        found = next((_SIZE.fullmatch(parameters(line).get("SIZE", "")) for line in size.lines), None)
        if found is None or not (int(found[1]) and int(found[2])):
            raise MalformedResponseError(f"the switch does not report its size: {size.lines}")
        return replace(self, inputs=int(found[1]), outputs=int(found[2]), tid=self.tid or size.sid)

    def connect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Send `ENT-PATCH::in,out:ctag;` for each circuit; the list shows them only some time after."""
        return all_confirmed([self._command("ENT-PATCH", self._patch(circuit)) for circuit in circuits])

    def disconnect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Send `DLT-PATCH::in&in:ctag;`, which names one end only: the list is read first.

        Raises `CommandWithheldError`, with nothing removed, if one of `circuits` is missing.
        """
        for circuit in circuits:
            self.output_name(circuit.output)
        commands = self.in_as_few_as_fit(circuits, self._removal)
        present = {state.circuit for state in (yield from self.circuits())}
        if absent := [circuit for circuit in circuits if circuit not in present]:
            raise CommandWithheldError("SDNC", f"the switch does not list {_named(absent)}")
        yield from all_confirmed(commands)

    def circuits(self) -> Procedure[list[ListedCircuit]]:
        """Read `RTRV-PATCH:::ctag;`: rows of two ports, in either order."""
        return [self._circuit(line) for line in (yield from rows(self._command("RTRV-PATCH")))]

    def powers(self) -> Procedure[dict[Port, float]]:
        """Read `RTRV-PORT-POWER::1&&n:ctag;`: rows of port and dBm."""
        found = yield from rows(self._command("RTRV-PORT-POWER", f"1&&{self.inputs + self.outputs}"))
        readings = [_POWER.fullmatch(unquote(line)) for line in found]
        return {
            self._port(int(reading[1])): dbm
            for reading in readings
            if reading and self.ports_named(reading[1]) and (dbm := power(reading[2])) is not None
        }

    def _command(self, verb: str, aid: str = "") -> Tl1Command:
        # Always in quotes, even if the name does not need them.
        tid = quote(self.tid).strip('"') if self.quoted_tid else ""
        return Tl1Command(verb, aid, tid=f'"{tid}"' if tid else "")

    def _patch(self, circuit: Circuit) -> str:
        ends = [self.input_name(circuit.input), self.output_name(circuit.output)]
        return ",".join(reversed(ends) if self.output_first else ends)

    def _removal(self, circuits: Sequence[Circuit]) -> Tl1Command:
        return self._command("DLT-PATCH", "&".join(self.input_name(circuit.input) for circuit in circuits))

    def _circuit(self, line: str) -> ListedCircuit:
        row = _PATCH.fullmatch(unquote(line))
        ends = sorted(self._port(int(name)) for name in row.groups()) if row else []
        if [port.side for port in ends] != ["in", "out"]:
            raise MalformedResponseError(f"a patch joins an input and an output, not {line}")
        return ListedCircuit(ends[0].number, ends[1].number, _STEADY)

    def _port(self, number: int) -> Port:
        if not 1 <= number <= self.inputs + self.outputs:
            raise MalformedResponseError(f"the switch names port {number} of {self.inputs} + {self.outputs}")
        return Port("in", number) if number <= self.inputs else Port("out", number - self.inputs)


def _within(number: int, last: int) -> str:
    if not 1 <= number <= last:
        raise InvalidCommandError(f"port {number} is outside 1..{last}")
    return str(number)


def _named(circuits: Sequence[Circuit]) -> str:
    return ", ".join(f"{circuit.input} to {circuit.output}" for circuit in circuits[:5])
