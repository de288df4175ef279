"""The emulated switch as a Glimmerglass: inputs 10001 and up, outputs 20001 and up, echo, prompt `<`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.light import DARK_DBM
from optical_switch.model import DARK_BELOW_DBM, Circuit, Port
from tl1_driver.emulator.faults import Tl1Faults
from tl1_driver.emulator.language import Language
from tl1_driver.emulator.requests import ReceivedCommand

FIRST_NAME = {"in": 10000, "out": 20000}
"""Offset of the names of ports on each side."""


class GlimmerglassLanguage(Language):
    """`ent-crs-fiber`, `dlt-crs-fiber` and the lists."""

    greeting = "<"
    prompt = "\r\n<"
    echo = True
    connect_seconds = 0.014172

    def __init__(self, hardware: OpticalHardware, faults: Tl1Faults, sid: str) -> None:
        super().__init__(hardware, faults, sid)
        self.reads |= {
            "RTRV-CRS-FIBER": lambda request: self._connection_rows(self.ports(request.aid)),
            "RTRV-CFG-FIBER": lambda request: self._port_rows(self.ports(request.aid)),
            "RTRV-PORT-POWER": lambda request: self._power_rows(self.ports(request.aid)),
            "RTRV-SYSTEM-INFO": lambda _: self._system_rows(),
        }
        self.changes |= {"ENT-CRS-FIBER": self._connect, "DLT-CRS-FIBER": self._disconnect}

    def name_of(self, port: Port) -> str:
        """Return the name of a port: 10000 + n for inputs, 20000 + n for outputs."""
        return str(FIRST_NAME[port.side] + port.number)

    def waits(self, request: ReceivedCommand) -> bool:
        """Return True for `opmode=sync`, the default. Raises `RefusalError` for a mode that does not exist."""
        mode = request.settings.get("OPMODE", "sync").lower()
        if mode not in ("sync", "async"):
            raise RefusalError(SwitchRefusal.INVALID_VALUE, f"opmode is sync or async, not {mode}")
        return mode == "sync"

    def ports(self, aid: str) -> list[Port]:
        """Return the ports that `aid` names: `all`, or names and ranges joined by `&` (`10001&10003&&10007`).

        Raises `RefusalError` if one does not exist.
        """
        if aid.lower() == "all":
            return self._every_port()
        return [port for part in aid.replace("&&", "..").split("&") for port in self._range(part)]

    def circuits_named(self, aid: str) -> list[Circuit]:
        """Return the circuits that `in&in,out&out` names, the n-th input with the n-th output.

        Raises `RefusalError` if the text does not name existing inputs and as many existing outputs.
        """
        sides = [self.ports(side) for side in aid.split(",")]
        if len(sides) != 2 or len(sides[0]) != len(sides[1]):
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, "the command needs as many outputs as inputs")
        if any(port.side != "in" for port in sides[0]) or any(port.side != "out" for port in sides[1]):
            text = "the command needs inputs before the comma and outputs after it"
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, text)
        return [Circuit(source.number, target.number) for source, target in zip(*sides, strict=True)]

    def circuits_to_delete(self, aid: str) -> list[Circuit]:
        """Return the circuits that a delete names: `all`, pairs as in a connect, or one end of each.

        Raises `RefusalError` if a port does not exist, or a port that is named alone is not connected.
        """
        if aid.lower() == "all":
            return list(self.hardware.crossbar.circuits)
        if "," in aid:
            return self.circuits_named(aid)
        return list(dict.fromkeys(self.circuit_at(port) for port in self.ports(aid)))

    def _connect(self, request: ReceivedCommand) -> CrossbarChange:
        return self.hardware.connecting(self.circuits_named(request.aid))

    def _disconnect(self, request: ReceivedCommand) -> CrossbarChange:
        return self.hardware.disconnecting(self.circuits_to_delete(request.aid))

    def _range(self, part: str) -> list[Port]:
        first, *more = (self._port(name) for name in part.split(".."))
        if not more:
            return [first]
        if len(more) > 1 or more[0].side != first.side:
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"{part} is not a range of ports")
        return [Port(first.side, number) for number in range(first.number, more[0].number + 1)]

    def _every_port(self) -> list[Port]:
        crossbar = self.hardware.crossbar
        inputs = [Port("in", n + 1) for n in range(crossbar.inputs)]
        return inputs + [Port("out", n + 1) for n in range(crossbar.outputs)]

    def _port(self, name: str) -> Port:
        number = int(name) if name.isascii() and name.isdigit() and len(name) == 5 else 0
        side = "in" if number < FIRST_NAME["out"] else "out"
        return self.port_called(number - FIRST_NAME[side], side)

    def _connection_rows(self, ports: Sequence[Port]) -> list[str]:
        """Return a row for each circuit, input or output that is concerned."""
        circuits = self.hardware.circuits
        outputs, inputs = dict(circuits), {circuit.output: circuit.input for circuit in circuits}
        # A circuit as (input, output), a port that is not connected with 0 for its partner.
        pairs = [(n, outputs.get(n, 0)) if side == "in" else (inputs.get(n, 0), n) for side, n in ports]
        power = self.hardware.powers()
        return [self._connection_row(Circuit(*pair), power) for pair in dict.fromkeys(pairs)]

    def _connection_row(self, circuit: Circuit, power: Mapping[Port, float]) -> str:
        source, target = circuit
        entering = power.get(Port("in", source), DARK_DBM) if source else 0.0
        leaving = power.get(Port("out", target), DARK_DBM) if target else 0.0
        state, cause = self._state(circuit, lit=entering >= DARK_BELOW_DBM)
        loss = entering - leaving if state == "steady" else 0.0
        locked = circuit in self.hardware.locked
        columns = {
            "IPORTID": self.name_of(Port("in", source)) if source else "0",
            "IPORTNAME": "",
            "OPORTID": self.name_of(Port("out", target)) if target else "0",
            "OPORTNAME": "",
            "CONNID": "0",
            "CONNSTATE": state,
            "CONNCAUSE": cause,
            "INPWR": f"{entering:.3f}",
            "OUTPWR": f"{leaving:.3f}",
            "PWRLOSS": f"{loss:.3f}",
            "CONNLOCK": "1" if locked else "0",
            "CONNLOCKUSER": self.hardware.owners.get(circuit, "") if locked else "",
        }
        return _row(columns)

    def _state(self, circuit: Circuit, lit: bool) -> tuple[str, str]:
        """Return the state and its cause; the words for a failed port are assumed, since no such row is on record."""
        if not (circuit.input and circuit.output):
            return "single", "none"
        if self.faults.dead_ends(circuit):
            return "fault", "port_failed"
        return ("steady", "none") if lit else ("fault", "initial_connection_timer_expired")

    def _port_rows(self, ports: Sequence[Port]) -> list[str]:
        return [
            _row(
                {
                    "PORTID": self.name_of(port),
                    "PORTNAME": "",
                    "PORTDIR": "input" if port.side == "in" else "output",
                    "PORTHEALTH": "failed" if port in self.faults.dead_ports else "good",
                    "PORTCAT": "nor",
                    "PORTPRIV": "0x1",
                }
            )
            for port in ports
        ]

    def _power_rows(self, ports: Sequence[Port]) -> list[str]:
        power = self.hardware.powers()
        return [_row({"PORTID": self.name_of(port), "PORTPOWER": f"{power.get(port, DARK_DBM):.3f}"}) for port in ports]

    def _system_rows(self) -> list[str]:
        return [
            _row({"SystemType": "System300"}),
            _row({"SerialNumber": "EMULATED"}),
            _row({"LicensedPortMatrix": f"{self.hardware.crossbar.inputs}x{self.hardware.crossbar.outputs}"}),
        ]


def _row(columns: Mapping[str, str]) -> str:
    return '"GGN:' + ",".join(f"{name}={value}" for name, value in columns.items()) + '"'
