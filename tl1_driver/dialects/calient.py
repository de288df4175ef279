"""Calient DiamondWave, S160, S320 and Edge640 over raw TL1 (port 3082; port 3083 adds a prompt).

A port has an input and an output fiber under one name, `1.2.3`. A connection is called `a>b`, or `a-b` if it is
bidirectional; it is entered (ENT) and switched on (ACT), switched off (CANC) and removed (DLT). A bulk command handles
many at once; the switch confirms it when it begins, and the client polls its outcome. A bulk is fast only if its ports
are free, and a switch frees them on its own: so the dialect reads the list first, and sends nothing that would affect
another connection. Command and row formats are those of public clients of these switches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from optical_switch.model import Circuit, Port
from optical_switch.session import LightCheckTime
from tl1_driver.dialects.base import Dialect, power
from tl1_driver.protocol.circuits import ENTERED, ListedCircuit
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    CommandWithheldError,
    InvalidCommandError,
    MalformedResponseError,
    PartialCompletionError,
    SwitchTimeoutError,
)
from tl1_driver.protocol.messages import Tl1Command
from tl1_driver.protocol.payload import parameters, unquote
from tl1_driver.protocol.procedure import Procedure, confirmed, pause, rows

PORTS_PER_CARD = 8
CARDS_PER_MODULE = 8
LARGEST = 640
"""Ports of the largest switch with these names, 10 modules of 8 cards of 8 ports."""
ALL_PORTS = "0"

_NAME = re.compile(r"([0-9A-Za-z.]{1,32})([>-])([0-9A-Za-z.]{1,32})")
_ROW_NAME = re.compile(r"([^:=,]+):")
_PORT_NAME = re.compile(r"[0-9A-Za-z.]{1,32}")
ONE_WAY = ">"


@dataclass(frozen=True)
class Calient(Dialect):
    """The dialect of Calient switches.

    Port n is `module.card.port` with 8 ports on a card and 8 cards in a module; `names` has the port names of a switch
    with another numbering, the first being port 1. Connections are entered under `group`; connections of another group
    and all bidirectional ones belong to other clients. A bulk is polled every `poll_seconds`, `polls` times.
    """

    name: str = "calient"
    port: int = 3082
    light_check: LightCheckTime = "before_grant"
    names: tuple[str, ...] = ()
    group: str = "BLAST"
    poll_seconds: float = 0.02
    polls: int = 500

    def input_name(self, number: int) -> str:
        """Return the port's name, which input and output share."""
        return self._port_name(number)

    def output_name(self, number: int) -> str:
        """Return the port's name, which input and output share."""
        return self._port_name(number)

    def ports_named(self, aid: str) -> list[Port]:
        """Return an input and an output."""
        number = self._numbers.get(aid.lower())
        return [Port("in", number), Port("out", number)] if number is not None else []

    def connect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Set one circuit by ENT-CRS and ACT-CRS, several by `ent-crs-bulk`.

        Raises `CommandWithheldError` if a bulk needs busy ports.
        """
        if len(circuits) == 1:
            yield from self._connect_one(circuits[0])
            return
        commands = self.in_as_few_as_fit(circuits, lambda some: self._bulk("ent-crs-bulk", some))
        self._check_free(circuits, (yield from self.circuits()))
        for command in commands:
            yield from self._carry_through(command)

    def disconnect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Remove one circuit by CANC-CRS and DLT-CRS, several by `dlt-crs-bulk`; all of them name both ends."""
        if len(circuits) == 1:
            yield from self._disconnect_one(circuits[0])
            return
        for command in self.in_as_few_as_fit(circuits, lambda some: self._bulk("dlt-crs-bulk", some)):
            yield from self._carry_through(command)

    def circuits(self) -> Procedure[list[ListedCircuit]]:
        """Read connections by `RTRV-CRS:::ctag::ALL;`, and power and state by `RTRV-PORT-SUM::0:ctag;`."""
        listed = yield from rows(Tl1Command("RTRV-CRS", blocks=("", "ALL")))
        ports = yield from self._port_rows()
        return [state for line in listed for state in self._states(line, ports)]

    def powers(self) -> Procedure[dict[Port, float]]:
        """Read `RTRV-PORT-SUM::0:ctag;`: INPWR and OUTPWR of each port, NONE where there is no monitor."""
        ports = yield from self._port_rows()
        columns = {"in": "INPWR", "out": "OUTPWR"}
        return {
            port: dbm
            for name, row in ports.items()
            for port in self.ports_named(name)
            if (dbm := power(row.get(columns[port.side], ""))) is not None
        }

    def _connect_one(self, circuit: Circuit) -> Procedure[None]:
        pair, name = self._pair(circuit), self._name(circuit)
        yield from confirmed(Tl1Command("ENT-CRS", pair, ("", f"{self.group},1WAY")))
        try:
            yield from confirmed(Tl1Command("ACT-CRS", pair, ("", f"{name},{self.group}")))
        except CommandDeniedError as refusal:
            # An entered circuit would occupy its ports without passing light.
            try:
                yield from confirmed(self._by_name("DLT-CRS", circuit))
            except CommandDeniedError as stuck:
                text = f"{name} stays entered: activating failed ({refusal}), and so did removing it ({stuck})"
                raise PartialCompletionError(refusal.code, text) from stuck
            raise

    def _disconnect_one(self, circuit: Circuit) -> Procedure[None]:
        try:
            yield from confirmed(self._by_name("CANC-CRS", circuit))
        except CommandDeniedError as refusal:
            # A circuit that is only entered cannot be switched off, but it can be removed.
            try:
                yield from confirmed(self._by_name("DLT-CRS", circuit))
            except CommandDeniedError:
                raise refusal from None
            return
        yield from confirmed(self._by_name("DLT-CRS", circuit))

    def _carry_through(self, command: Tl1Command) -> Procedure[None]:
        """Send a bulk command and wait until the switch reports its outcome."""
        yield from confirmed(command)
        for _ in range(self.polls):
            status = " ".join((yield from rows(Tl1Command("RTRV-SAVERECALL"))))
            if "progress" in status.lower():
                yield from pause(self.poll_seconds)
            elif "failed" in status.lower():
                raise PartialCompletionError("PRTL", f"{command.verb}: {status}")
            elif "completed" in status.lower():
                return
            else:
                raise MalformedResponseError(f"{command.verb} has an unknown status: {status}")
        raise SwitchTimeoutError(f"{command.verb} is still in progress after {self.polls * self.poll_seconds:g} s")

    def _check_free(self, circuits: Sequence[Circuit], present: Sequence[ListedCircuit]) -> None:
        sources, targets = {state.input for state in present}, {state.output for state in present}
        for circuit in circuits:
            if circuit.input in sources or circuit.output in targets:
                raise CommandWithheldError("SNVS", f"a port of {self._name(circuit)} is in use")
            sources.add(circuit.input)
            targets.add(circuit.output)

    def _bulk(self, verb: str, circuits: Sequence[Circuit]) -> Tl1Command:
        return Tl1Command(verb, "&".join(self._name(circuit) for circuit in circuits))

    def _by_name(self, verb: str, circuit: Circuit) -> Tl1Command:
        return Tl1Command(verb, blocks=("", self._name(circuit)))

    def _pair(self, circuit: Circuit) -> str:
        return f"{self.input_name(circuit.input)},{self.output_name(circuit.output)}"

    def _name(self, circuit: Circuit) -> str:
        return f"{self.input_name(circuit.input)}{ONE_WAY}{self.output_name(circuit.output)}"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        last = len(self.names) or LARGEST
        return {self._port_name(number).lower(): number for number in range(1, last + 1)}

    def _port_name(self, number: int) -> str:
        last = len(self.names) or LARGEST
        if not 1 <= number <= last:
            raise InvalidCommandError(f"port {number} is outside 1..{last}")
        if self.names:
            return self.names[number - 1]
        card, place = divmod(number - 1, PORTS_PER_CARD)
        module, slot = divmod(card, CARDS_PER_MODULE)
        return f"{module + 1}.{slot + 1}.{place + 1}"

    def _port_rows(self) -> Procedure[dict[str, dict[str, str]]]:
        """Return the rows of all ports by the switch's name of the port, in lowercase."""
        found: dict[str, dict[str, str]] = {}
        for line in (yield from rows(Tl1Command("RTRV-PORT-SUM", ALL_PORTS))):
            name = _ROW_NAME.match(unquote(line))
            if name is None or not _PORT_NAME.fullmatch(name[1]):
                raise MalformedResponseError(f"a row of the port summary names no port: {line}")
            found[name[1].lower()] = parameters(line)
        return found

    def _states(self, line: str, ports: dict[str, dict[str, str]]) -> list[ListedCircuit]:
        row = parameters(line)
        title = _ROW_NAME.match(unquote(line))
        name = _NAME.fullmatch(row.get("CONNNAME", "")) or _NAME.fullmatch(title[1] if title else "")
        source = row.get("SRCPORT", name[1] if name else "").lower()
        target = row.get("DSTPORT", name[3] if name else "").lower()
        numbers = self._numbers
        if source not in numbers or target not in numbers:
            raise MalformedResponseError(f"a connection row does not join two known ports: {line}")
        bidirectional = row.get("CONNTYPE", "").upper() == "2WAY" or bool(name and name[2] != ONE_WAY)
        owner = row.get("GRPNAME", "")
        entering, leaving = ports.get(source, {}), ports.get(target, {})
        forward = ListedCircuit(
            numbers[source],
            numbers[target],
            _state(row, entering),
            power(entering.get("INPWR", "")),
            power(leaving.get("OUTPWR", "")),
            locked=bidirectional or owner.upper() != self.group.upper(),
            owner=owner,
        )
        if not bidirectional or source == target:
            return [forward]
        back = forward._replace(
            input=forward.output,
            output=forward.input,
            input_power=power(leaving.get("INPWR", "")),
            output_power=power(entering.get("OUTPWR", "")),
        )
        return [forward, back]


def _state(connection: dict[str, str], source: dict[str, str]) -> str:
    """Return `entered` unless the port summary calls the connection active, else its operational state."""
    name = connection.get("CONNNAME", "").lower()
    for number in ("1", "2"):
        if name and source.get(f"CONNNAME{number}", "").lower() == name:
            if source.get(f"CONNSTATE{number}", "").upper() != "ACT":
                return ENTERED
            break
    return "fault" if connection.get("OC", "OK").upper() not in ("OK", "NONE", "") else "steady"
