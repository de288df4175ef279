"""The emulated switch as a Calient: ports `1.2.3`, connections entered and then activated, bulks in the background.

A bulk that needs busy ports frees them first, which takes longer: 500 ms instead of 200 (the vendor's figures).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.light import DARK_DBM
from optical_switch.model import Circuit, Port
from tl1_driver.emulator.faults import Tl1Faults
from tl1_driver.emulator.language import Language
from tl1_driver.emulator.requests import ReceivedCommand

PORTS_PER_CARD = 8
CARDS_PER_MODULE = 8
"""Ports of a card and cards of a module in the names of an S320: `1.1.1` to `5.8.8` are its 320 ports."""
CONFLICT_FACTOR = 2.5
"""Time of a bulk that frees busy ports, relative to one that does not: 500 ms to 200 ms."""
NO_CONNECTION = "NONE", "NONE"
"""Name and state of a connection that a port does not have."""
_PORT = re.compile(r"([1-9]\d{0,2})\.([1-8])\.([1-8])")


class CalientLanguage(Language):
    """`ENT-`, `ACT-`, `CANC-` and `DLT-CRS`, the bulks, and the lists. Raw TL1, as on port 3082."""

    connect_seconds = 0.2

    def __init__(self, hardware: OpticalHardware, faults: Tl1Faults, sid: str) -> None:
        super().__init__(hardware, faults, sid)
        self._entered: dict[Circuit, str] = {}
        self._bulk = "Completed"
        self.reads |= {
            "RTRV-CRS": lambda _: self._connection_rows(),
            "RTRV-PORT-SUM": lambda request: self._summary_rows(self._numbers(request.aid)),
            "RTRV-SAVERECALL": lambda _: [f'"BULK:STATUS={self._bulk}"'],
            "RTRV-PORT": lambda request: [
                f'"{self._name(n)}:WX,NONE,NONE:INAS=IS"' for n in self._numbers(request.aid)
            ],
            "RTRV-NE": lambda _: [f'"{self.sid}:SERIALNUMBER=EMULATED,STATUS=OK,CHASSISTYPE=S320"'],
        }
        self.changes |= {
            "ENT-CRS": self._enter,
            "ACT-CRS": self._activate,
            "CANC-CRS": self._cancel,
            "DLT-CRS": self._delete,
            "ENT-CRS-BULK": self._enter_bulk,
            "DLT-CRS-BULK": self._delete_bulk,
        }

    def name_of(self, port: Port) -> str:
        """Return the port's name, which input and output share."""
        return self._name(port.number)

    def waits(self, request: ReceivedCommand) -> bool:
        """Return False for a bulk: it is answered at once, and `RTRV-SAVERECALL` has its outcome."""
        return not request.verb.endswith("-BULK")

    def _enter(self, request: ReceivedCommand) -> CrossbarChange:
        source, _, target = request.aid.partition(",")
        circuit = Circuit(self._number(source, "in"), self._number(target, "out"))
        group, _, kind = (request.payload[0] if request.payload else "").partition(",")
        if kind.upper() != "1WAY":
            raise RefusalError(SwitchRefusal.INVALID_VALUE, "only one-way connections are emulated")
        for other in self._known():
            if circuit.input == other.input or circuit.output == other.output:
                raise RefusalError(SwitchRefusal.IN_USE, f"a port is in connection {self._title(other)}")
        return CrossbarChange(done=lambda _: self._entered.update({circuit: group}))

    def _activate(self, request: ReceivedCommand) -> CrossbarChange:
        circuit = self._named(request)
        if circuit not in self._entered:
            raise RefusalError(SwitchRefusal.NOT_CONNECTED, "there is no such connection")
        return self.hardware.connecting([circuit])

    def _cancel(self, request: ReceivedCommand) -> CrossbarChange:
        return self.hardware.disconnecting([self._named(request)])

    def _delete(self, request: ReceivedCommand) -> CrossbarChange:
        circuit = self._named(request)
        if circuit not in self._known():
            raise RefusalError(SwitchRefusal.NOT_CONNECTED, "there is no such connection")
        if circuit in self.hardware.crossbar.circuits:
            raise RefusalError(SwitchRefusal.IN_USE, "the connection is active")
        return CrossbarChange(done=lambda _: self._forget([circuit]))

    def _enter_bulk(self, request: ReceivedCommand) -> CrossbarChange:
        circuits = self._several(request)
        busy = [other for other in self._known() if any(_share(other, circuit) for circuit in circuits)]
        self.hardware.check_unlocked(busy)
        in_the_way = [circuit for circuit in busy if circuit in self.hardware.crossbar.circuits]
        try:
            change = self.hardware.connecting(circuits, in_the_way)
        except RefusalError as refusal:
            change = CrossbarChange(seconds=self.hardware.connect_seconds, refusal=refusal)

        def done(refusal: RefusalError | None) -> None:
            connected = set(change.added).intersection(self.hardware.crossbar.circuits)
            if connected:
                self._forget(busy)
                self._entered.update(dict.fromkeys(connected, "BLAST"))
            self._finish(refusal)

        self._bulk = "In progress"
        factor = CONFLICT_FACTOR if in_the_way else 1.0
        return replace(change, seconds=change.seconds * factor, done=done)

    def _delete_bulk(self, request: ReceivedCommand) -> CrossbarChange:
        circuits = self._several(request)
        change = self.hardware.disconnecting(circuits)

        def done(refusal: RefusalError | None) -> None:
            if refusal is None:
                self._forget(circuits)
            self._finish(refusal)

        self._bulk = "In progress"
        return replace(change, done=done)

    def _finish(self, refusal: RefusalError | None) -> None:
        failed = refusal is not None and self.faults.completion(refusal) != "COMPLD"
        self._bulk = f"Failed,CAUSE={refusal.text}" if refusal is not None and failed else "Completed"

    def _known(self) -> list[Circuit]:
        """Return all circuits that are entered, active or not, and those set by hand."""
        return sorted({*self._entered, *self.hardware.crossbar.circuits})

    def _forget(self, circuits: Sequence[Circuit]) -> None:
        for circuit in circuits:
            self._entered.pop(circuit, None)

    def _several(self, request: ReceivedCommand) -> list[Circuit]:
        circuits = [self._circuit(name) for name in request.aid.split("&")]
        if len({circuit.input for circuit in circuits}) != len(circuits):
            raise RefusalError(SwitchRefusal.IN_USE, "an input is named twice")
        if len({circuit.output for circuit in circuits}) != len(circuits):
            raise RefusalError(SwitchRefusal.IN_USE, "an output is named twice")
        return circuits

    def _named(self, request: ReceivedCommand) -> Circuit:
        """Return the connection in the payload: `name`, `name,group` or `,group,name`."""
        fields = (request.payload[0] if request.payload else "").split(",")
        return self._circuit(next((field for field in fields if ">" in field), ""))

    def _circuit(self, name: str) -> Circuit:
        source, _, target = name.partition(">")
        return Circuit(self._number(source, "in"), self._number(target, "out"))

    def _number(self, name: str, side: str) -> int:
        place = _PORT.fullmatch(name.strip())
        if place is None:
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"there is no port {name}")
        module, card, port = (int(part) - 1 for part in place.groups())
        return self.port_called((module * CARDS_PER_MODULE + card) * PORTS_PER_CARD + port + 1, side).number

    def _numbers(self, aid: str) -> list[int]:
        last = max(self.hardware.crossbar.inputs, self.hardware.crossbar.outputs)
        return list(range(1, last + 1)) if aid == "0" else [self._number(name, "in") for name in aid.split("&")]

    def _name(self, number: int) -> str:
        card, port = divmod(number - 1, PORTS_PER_CARD)
        module, slot = divmod(card, CARDS_PER_MODULE)
        return f"{module + 1}.{slot + 1}.{port + 1}"

    def _title(self, circuit: Circuit) -> str:
        return f"{self._name(circuit.input)}>{self._name(circuit.output)}"

    def _listed(self) -> list[Circuit]:
        """Return the circuits of `_known` as the list shows them."""
        return sorted({*self._entered, *self.hardware.circuits})

    def _connection_rows(self) -> list[str]:
        powers = self.hardware.powers()
        return [self._connection_row(circuit, powers) for circuit in self._listed()]

    def _connection_row(self, circuit: Circuit, powers: Mapping[Port, float]) -> str:
        title = self._title(circuit)
        group = self.hardware.owners.get(circuit) or self._entered.get(circuit, "SYSTEM")
        fails = Port("in", circuit.input) not in powers or bool(self.faults.dead_ends(circuit))
        return (
            f'"{title}:SRCPORT={self._name(circuit.input)},DSTPORT={self._name(circuit.output)},GRPNAME={group},'
            f'CONNNAME={title},CONNTYPE=1WAY,AS=UMA,OS=RDY,OC={"FAIL" if fails else "OK"},PS=UPR,AL=CL"'
        )

    def _summary_rows(self, numbers: Sequence[int]) -> list[str]:
        powers, active = self.hardware.powers(), set(self.hardware.circuits)
        connections: dict[int, list[tuple[str, str]]] = {}
        for circuit in self._listed():
            connection = self._title(circuit), "ACT" if circuit in active else "NONE"
            for number in {*circuit}:
                connections.setdefault(number, []).append(connection)
        return [self._summary_row(number, connections.get(number, []), powers) for number in numbers]

    def _summary_row(self, number: int, connections: list[tuple[str, str]], powers: Mapping[Port, float]) -> str:
        entering, leaving = powers.get(Port("in", number), DARK_DBM), powers.get(Port("out", number), DARK_DBM)
        columns = ",".join(
            f"CONNNAME{place}={name},CONNSTATE{place}={state}"
            for place, (name, state) in enumerate([*connections, NO_CONNECTION, NO_CONNECTION][:2], 1)
        )
        return f'"{self._name(number)}:ALIAS=NONE,INPWR={entering:.2f},OUTPWR={leaving:.2f},{columns}"'


class PromptingCalientLanguage(CalientLanguage):
    """The same language as on port 3083, with a prompt and echo."""

    greeting = "agent>"
    prompt = "\r\nagent>"
    echo = True


def _share(one: Circuit, other: Circuit) -> bool:
    return one.input == other.input or one.output == other.output
