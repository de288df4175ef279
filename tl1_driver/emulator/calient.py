"""The emulated switch as a Calient: ports `1.2.3`, connections entered and then activated, bulks in the background.

A bulk that needs busy ports frees them first, which takes longer: 500 ms instead of 200 (the vendor's figures).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tl1_driver.emulator.crossbar import BUSY, NO_SUCH_CIRCUIT, UNKNOWN_PORT, RefusalError
from tl1_driver.emulator.language import Language
from tl1_driver.emulator.light import DARK_DBM
from tl1_driver.emulator.manual_circuits import CrossbarChange, ManualCircuits
from tl1_driver.emulator.requests import BAD_PARAMETER, ReceivedCommand
from tl1_driver.protocol.circuits import Circuit, Port

PORTS_PER_CARD = 8
CARDS_PER_MODULE = 8
CONFLICT_FACTOR = 2.5
_PORT = re.compile(r"([1-9]\d{0,2})\.([1-8])\.([1-8])")


class CalientLanguage(Language):
    """`ENT-`, `ACT-`, `CANC-` and `DLT-CRS`, the bulks, and the lists. Raw TL1, as on port 3082."""

    connect_seconds = 0.2

    def __init__(self, bench: ManualCircuits) -> None:
        super().__init__(bench)
        self._entered: dict[Circuit, str] = {}
        self._bulk = "Completed"
        self.reads |= {
            "RTRV-CRS": lambda _: [self._connection_row(circuit) for circuit in self._known()],
            "RTRV-PORT-SUM": lambda request: [self._summary_row(number) for number in self._numbers(request.aid)],
            "RTRV-SAVERECALL": lambda _: [f'"BULK:STATUS={self._bulk}"'],
            "RTRV-PORT": lambda request: [
                f'"{self._name(n)}:WX,NONE,NONE:INAS=IS"' for n in self._numbers(request.aid)
            ],
            "RTRV-NE": lambda _: [f'"{self.bench.sid}:SERIALNUMBER=EMULATED,STATUS=OK,CHASSISTYPE=S320"'],
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

    def _enter(self, request: ReceivedCommand) -> CrossbarChange:
        source, _, target = request.aid.partition(",")
        circuit = Circuit(self._number(source, "in"), self._number(target, "out"))
        group, _, kind = (request.payload[0] if request.payload else "").partition(",")
        if kind.upper() != "1WAY":
            raise RefusalError(BAD_PARAMETER, "only one-way connections are emulated")
        for other in self._known():
            if circuit.input == other.input or circuit.output == other.output:
                raise RefusalError(BUSY, f"a port is in connection {self._title(other)}")
        return CrossbarChange(done=lambda _: self._entered.update({circuit: group}))

    def _activate(self, request: ReceivedCommand) -> CrossbarChange:
        circuit = self._named(request)
        if circuit not in self._entered:
            raise RefusalError(NO_SUCH_CIRCUIT, "there is no such connection")
        return self.bench.connecting([circuit])

    def _cancel(self, request: ReceivedCommand) -> CrossbarChange:
        return self.bench.disconnecting([self._named(request)])

    def _delete(self, request: ReceivedCommand) -> CrossbarChange:
        circuit = self._named(request)
        if circuit not in self._known():
            raise RefusalError(NO_SUCH_CIRCUIT, "there is no such connection")
        if circuit in self.bench.crossbar.circuits:
            raise RefusalError(BUSY, "the connection is active")
        return CrossbarChange(done=lambda _: self._forget([circuit]))

    def _enter_bulk(self, request: ReceivedCommand) -> CrossbarChange:
        circuits = self._several(request)
        busy = [other for other in self._known() if any(_share(other, circuit) for circuit in circuits)]
        self.bench.check_unlocked(busy)
        in_the_way = [circuit for circuit in busy if circuit in self.bench.crossbar.circuits]
        try:
            change = self.bench.connecting(circuits, in_the_way)
        except RefusalError as refusal:
            change = CrossbarChange(seconds=self.bench.connect_seconds, refusal=refusal)
        added = change.added

        def done(refusal: RefusalError | None) -> None:
            if added:
                self._forget(busy)
            if refusal is None or change.refusal is not None:
                self._entered.update(dict.fromkeys(added, "BLAST"))
            self._finish(refusal)

        self._bulk = "In progress"
        factor = CONFLICT_FACTOR if in_the_way else 1.0
        return replace(change, seconds=change.seconds * factor, waits=False, done=done)

    def _delete_bulk(self, request: ReceivedCommand) -> CrossbarChange:
        circuits = self._several(request)
        change = self.bench.disconnecting(circuits)

        def done(refusal: RefusalError | None) -> None:
            if refusal is None:
                self._forget(circuits)
            self._finish(refusal)

        self._bulk = "In progress"
        return replace(change, waits=False, done=done)

    def _finish(self, refusal: RefusalError | None) -> None:
        self._bulk = f"Failed,CAUSE={refusal.text}" if refusal else "Completed"

    def _known(self) -> list[Circuit]:
        """Return all circuits that are entered, active or not, and those set by hand."""
        return sorted({*self._entered, *self.bench.crossbar.circuits})

    def _forget(self, circuits: Sequence[Circuit]) -> None:
        for circuit in circuits:
            self._entered.pop(circuit, None)

    def _several(self, request: ReceivedCommand) -> list[Circuit]:
        circuits = [self._circuit(name) for name in request.aid.split("&")]
        if len({circuit.input for circuit in circuits}) != len(circuits):
            raise RefusalError(BUSY, "an input is named twice")
        if len({circuit.output for circuit in circuits}) != len(circuits):
            raise RefusalError(BUSY, "an output is named twice")
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
            raise RefusalError(UNKNOWN_PORT, f"there is no port {name}")
        module, card, port = (int(part) - 1 for part in place.groups())
        return self.port_called((module * CARDS_PER_MODULE + card) * PORTS_PER_CARD + port + 1, side).number

    def _numbers(self, aid: str) -> list[int]:
        last = max(self.bench.crossbar.inputs, self.bench.crossbar.outputs)
        return list(range(1, last + 1)) if aid == "0" else [self._number(name, "in") for name in aid.split("&")]

    def _name(self, number: int) -> str:
        card, port = divmod(number - 1, PORTS_PER_CARD)
        module, slot = divmod(card, CARDS_PER_MODULE)
        return f"{module + 1}.{slot + 1}.{port + 1}"

    def _title(self, circuit: Circuit) -> str:
        return f"{self._name(circuit.input)}>{self._name(circuit.output)}"

    def _connection_row(self, circuit: Circuit) -> str:
        title = self._title(circuit)
        group = self.bench.owners.get(circuit) or self._entered.get(circuit, "SYSTEM")
        dark = Port("in", circuit.input) not in self.bench.powers()
        return (
            f'"{title}:SRCPORT={self._name(circuit.input)},DSTPORT={self._name(circuit.output)},GRPNAME={group},'
            f'CONNNAME={title},CONNTYPE=1WAY,AS=UMA,OS=RDY,OC={"FAIL" if dark else "OK"},PS=UPR,AL=CL"'
        )

    def _summary_row(self, number: int) -> str:
        power = self.bench.powers()
        entering, leaving = power.get(Port("in", number), DARK_DBM), power.get(Port("out", number), DARK_DBM)
        mine = [circuit for circuit in self._known() if number in (circuit.input, circuit.output)][:2]
        columns = []
        for place in (1, 2):
            circuit = mine[place - 1] if len(mine) >= place else None
            active = circuit in self.bench.crossbar.circuits
            columns.append(f"CONNNAME{place}={self._title(circuit) if circuit else 'NONE'}")
            columns.append(f"CONNSTATE{place}={'ACT' if active else 'NONE'}")
        return f'"{self._name(number)}:ALIAS=NONE,INPWR={entering:.2f},OUTPWR={leaving:.2f},{",".join(columns)}"'


class PromptingCalientLanguage(CalientLanguage):
    """The same language as on port 3083, with a prompt and echo."""

    greeting = "agent>"
    prompt = "\r\nagent>"
    echo = True


def _share(one: Circuit, other: Circuit) -> bool:
    return one.input == other.input or one.output == other.output
