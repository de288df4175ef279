"""The emulated switch as a Polatis: inputs 1..N, outputs N+1 and up, neither echo nor prompt.

How long its mirrors take is not known; 25 ms is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.light import DARK_DBM
from optical_switch.model import Circuit, Port
from tl1_driver.emulator.faults import Tl1Faults
from tl1_driver.emulator.language import Language
from tl1_driver.emulator.requests import ReceivedCommand


class PolatisLanguage(Language):
    """`ENT-PATCH`, `DLT-PATCH` and the lists."""

    connect_seconds = 0.025
    order: ClassVar[tuple[str, str]] = ("in", "out")

    def __init__(self, hardware: OpticalHardware, faults: Tl1Faults, sid: str) -> None:
        super().__init__(hardware, faults, sid)
        self.reads |= {
            "RTRV-PATCH": lambda _: [self._patch_row(circuit) for circuit in self.hardware.circuits],
            "RTRV-PORT-POWER": lambda request: self._power_rows(self._ports(request.aid)),
            "RTRV-EQPT": self._size_rows,
            "RTRV-NETYPE": lambda _: ['"Polatis,EMULATED,OCS,1.0"'],
            "RTRV-INV": lambda _: ['"OCS:SN=EMULATED"'],
        }
        self.changes |= {"ENT-PATCH": self._connect, "DLT-PATCH": self._disconnect}

    def name_of(self, port: Port) -> str:
        """Return the number of the port; outputs are counted after the inputs."""
        return str(port.number + (self.hardware.crossbar.inputs if port.side == "out" else 0))

    def _connect(self, request: ReceivedCommand) -> CrossbarChange:
        ends = [self._port(name) for name in request.aid.split(",")]
        if tuple(port.side for port in ends) != self.order:
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"a patch is written {','.join(self.order)}")
        numbers = {port.side: port.number for port in ends}
        return self.hardware.connecting([Circuit(numbers["in"], numbers["out"])])

    def _disconnect(self, request: ReceivedCommand) -> CrossbarChange:
        if request.aid.upper() == "ALL":
            return self.hardware.disconnecting(self.hardware.crossbar.circuits)
        return self.hardware.disconnecting(
            list(dict.fromkeys(self.circuit_at(port) for port in self._ports(request.aid)))
        )

    def _ports(self, aid: str) -> list[Port]:
        first, between, last = aid.partition("&&")
        if between:
            names = range(self._number(first), self._number(last) + 1)
            return [self._port(str(name)) for name in names]
        return [self._port(name) for name in aid.split("&")]

    def _port(self, name: str) -> Port:
        number, inputs = self._number(name), self.hardware.crossbar.inputs
        return self.port_called(number, "in") if number <= inputs else self.port_called(number - inputs, "out")

    def _number(self, name: str) -> int:
        if not (name.isascii() and name.isdigit() and len(name) <= 5):
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"there is no port {name}")
        return min(int(name), self.hardware.crossbar.inputs + self.hardware.crossbar.outputs + 1)

    def _patch_row(self, circuit: Circuit) -> str:
        names = {"in": self.name_of(Port("in", circuit.input)), "out": self.name_of(Port("out", circuit.output))}
        return '"' + ",".join(names[side] for side in self.order) + '"'

    def _power_rows(self, ports: Sequence[Port]) -> list[str]:
        power = self.hardware.powers()
        return [f'"{self.name_of(port)}:{power.get(port, DARK_DBM):.2f}"' for port in ports]

    def _size_rows(self, request: ReceivedCommand) -> list[str]:
        if request.settings.get("PARAMETER", "").upper() != "SIZE":
            raise RefusalError(SwitchRefusal.INVALID_VALUE, "the size is all there is to know")
        return [f'"SYSTEM:SIZE={self.hardware.crossbar.inputs}x{self.hardware.crossbar.outputs}"']


class OutputFirstPolatisLanguage(PolatisLanguage):
    """Patches are written and listed as output, input."""

    order = ("out", "in")
