"""Calient DiamondWave, S160, S320 and Edge640 over raw TL1 (port 3082; 3083 is the same with a prompt).

A port has an input and an output fiber under one name, `1.2.3`. A connection is called `a>b`, or `a-b` if it goes
both ways; it is entered (ENT) and switched on (ACT), switched off (CANC) and removed (DLT). Many at once go by a bulk
command, which is confirmed when it begins; its outcome is polled. A bulk is quick only if its ports are free, and a
switch would free them by itself: so the list is read first, and nothing is sent that would hit another connection.

Command and row forms are those that public clients of these switches use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tl1_driver.circuits import ENTERED, Circuit, CircuitState, Port
from tl1_driver.dialects.base import Dialect, LightCheckTime, power
from tl1_driver.errors import Denied, InvalidCommand, MalformedAnswer, PartlyDone, TimedOut, Withheld
from tl1_driver.messages import Command
from tl1_driver.payload import parameters, unquote
from tl1_driver.procedure import Procedure, confirmed, pause, rows

PORTS_PER_CARD = 8
CARDS_PER_MODULE = 8
LARGEST = 640
ALL_PORTS = "0"

_NAME = re.compile(r"([0-9A-Za-z.]{1,32})([>-])([0-9A-Za-z.]{1,32})")
_ROW_NAME = re.compile(r"([^:=,]+):")
_PORT_NAME = re.compile(r"[0-9A-Za-z.]{1,32}")
ONE_WAY = ">"


@dataclass(frozen=True)
class Calient(Dialect):
    """The dialect of Calient switches.

    Port n is `module.card.port` with 8 ports on a card and 8 cards in a module; a switch that counts in another way
    has its port names in `names`, the first being port 1. Connections are entered under `group`; those of another
    group, and all that go both ways, are somebody else's. A bulk is polled every `poll_seconds`, `polls` times.
    """

    name: str = "calient"
    port: int = 3082
    light_check: LightCheckTime = "before_grant"
    names: tuple[str, ...] = ()
    group: str = "BLAST"
    poll_seconds: float = 0.02
    polls: int = 500

    def input_name(self, number: int) -> str:
        """The same as that of the output."""
        return self._port_name(number)

    def output_name(self, number: int) -> str:
        """The same as that of the input."""
        return self._port_name(number)

    def ports_named(self, aid: str) -> list[Port]:
        """An input and an output."""
        number = self._numbers.get(aid.lower())
        return [Port("in", number), Port("out", number)] if number is not None else []

    def connect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """One by ENT-CRS and ACT-CRS, several by `ent-crs-bulk`. Raises `Withheld` if a bulk would need busy ports."""
        if len(circuits) == 1:
            yield from self._connect_one(circuits[0])
            return
        commands = self.in_as_few_as_fit(circuits, lambda some: self._bulk("ent-crs-bulk", some))
        self._check_free(circuits, (yield from self.circuits()))
        for command in commands:
            yield from self._carry_through(command)

    def disconnect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """One by CANC-CRS and DLT-CRS, several by `dlt-crs-bulk`: all name both ends."""
        if len(circuits) == 1:
            yield from self._disconnect_one(circuits[0])
            return
        for command in self.in_as_few_as_fit(circuits, lambda some: self._bulk("dlt-crs-bulk", some)):
            yield from self._carry_through(command)

    def circuits(self) -> Procedure[list[CircuitState]]:
        """`RTRV-CRS:::ctag::ALL;` for the connections, `RTRV-PORT-SUM::0:ctag;` for their light and whether active."""
        listed = yield from rows(Command("RTRV-CRS", blocks=("", "ALL")))
        ports = yield from self._port_rows()
        return [state for line in listed for state in self._states(line, ports)]

    def powers(self) -> Procedure[dict[Port, float]]:
        """`RTRV-PORT-SUM::0:ctag;`: INPWR and OUTPWR of each port, NONE where there is no monitor."""
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
        yield from confirmed(Command("ENT-CRS", pair, ("", f"{self.group},1WAY")))
        try:
            yield from confirmed(Command("ACT-CRS", pair, ("", f"{name},{self.group}")))
        except Denied as refusal:
            # What is entered would keep its ports busy without carrying light.
            try:
                yield from confirmed(self._by_name("DLT-CRS", circuit))
            except Denied as stuck:
                text = f"{name} stays entered: activating failed ({refusal}), and so did removing it ({stuck})"
                raise PartlyDone(refusal.code, text) from stuck
            raise

    def _disconnect_one(self, circuit: Circuit) -> Procedure[None]:
        try:
            yield from confirmed(self._by_name("CANC-CRS", circuit))
        except Denied as refusal:
            # One that is only entered cannot be switched off, but removed.
            try:
                yield from confirmed(self._by_name("DLT-CRS", circuit))
            except Denied:
                raise refusal from None
            return
        yield from confirmed(self._by_name("DLT-CRS", circuit))

    def _carry_through(self, command: Command) -> Procedure[None]:
        """Send a bulk command and wait until the switch says what became of it."""
        yield from confirmed(command)
        for _ in range(self.polls):
            status = " ".join((yield from rows(Command("RTRV-SAVERECALL"))))
            if "progress" in status.lower():
                yield from pause(self.poll_seconds)
            elif "failed" in status.lower():
                raise PartlyDone("PRTL", f"{command.verb}: {status}")
            elif "completed" in status.lower():
                return
            else:
                raise MalformedAnswer(f"{command.verb} has an unknown status: {status}")
        raise TimedOut(f"{command.verb} is still in progress after {self.polls * self.poll_seconds:g} s")

    def _check_free(self, circuits: Sequence[Circuit], present: Sequence[CircuitState]) -> None:
        sources, targets = {state.input for state in present}, {state.output for state in present}
        for circuit in circuits:
            if circuit.input in sources or circuit.output in targets:
                raise Withheld("SNVS", f"a port of {self._name(circuit)} is in use")
            sources.add(circuit.input)
            targets.add(circuit.output)

    def _bulk(self, verb: str, circuits: Sequence[Circuit]) -> Command:
        return Command(verb, "&".join(self._name(circuit) for circuit in circuits))

    def _by_name(self, verb: str, circuit: Circuit) -> Command:
        return Command(verb, blocks=("", self._name(circuit)))

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
            raise InvalidCommand(f"port {number} is outside 1..{last}")
        if self.names:
            return self.names[number - 1]
        card, place = divmod(number - 1, PORTS_PER_CARD)
        module, slot = divmod(card, CARDS_PER_MODULE)
        return f"{module + 1}.{slot + 1}.{place + 1}"

    def _port_rows(self) -> Procedure[dict[str, dict[str, str]]]:
        """The rows of all ports by the switch's name of the port, in small letters."""
        found: dict[str, dict[str, str]] = {}
        for line in (yield from rows(Command("RTRV-PORT-SUM", ALL_PORTS))):
            name = _ROW_NAME.match(unquote(line))
            if name is None or not _PORT_NAME.fullmatch(name[1]):
                raise MalformedAnswer(f"a row of the port summary names no port: {line}")
            found[name[1].lower()] = parameters(line)
        return found

    def _states(self, line: str, ports: dict[str, dict[str, str]]) -> list[CircuitState]:
        row = parameters(line)
        title = _ROW_NAME.match(unquote(line))
        name = _NAME.fullmatch(row.get("CONNNAME", "")) or _NAME.fullmatch(title[1] if title else "")
        source = row.get("SRCPORT", name[1] if name else "").lower()
        target = row.get("DSTPORT", name[3] if name else "").lower()
        numbers = self._numbers
        if source not in numbers or target not in numbers:
            raise MalformedAnswer(f"a connection row joins no two ports that are known: {line}")
        both_ways = row.get("CONNTYPE", "").upper() == "2WAY" or bool(name and name[2] != ONE_WAY)
        owner = row.get("GRPNAME", "")
        entering, leaving = ports.get(source, {}), ports.get(target, {})
        forward = CircuitState(
            numbers[source],
            numbers[target],
            _state(row, entering),
            power(entering.get("INPWR", "")),
            power(leaving.get("OUTPWR", "")),
            locked=both_ways or owner.upper() != self.group.upper(),
            owner=owner,
        )
        if not both_ways or source == target:
            return [forward]
        back = forward._replace(
            input=forward.output,
            output=forward.input,
            input_power=power(leaving.get("INPWR", "")),
            output_power=power(entering.get("OUTPWR", "")),
        )
        return [forward, back]


def _state(connection: dict[str, str], source: dict[str, str]) -> str:
    """`entered` unless the port summary calls the connection active, else whether it works."""
    name = connection.get("CONNNAME", "").lower()
    for number in ("1", "2"):
        if name and source.get(f"CONNNAME{number}", "").lower() == name:
            if source.get(f"CONNSTATE{number}", "").upper() != "ACT":
                return ENTERED
            break
    return "fault" if connection.get("OC", "OK").upper() not in ("OK", "NONE", "") else "steady"
