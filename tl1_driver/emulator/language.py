"""The vendor-specific part of an emulated TL1 agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit, Port
from tl1_driver.emulator.faults import Tl1Faults
from tl1_driver.emulator.requests import ReceivedCommand

Read = Callable[[ReceivedCommand], Sequence[str]]
Plan = Callable[[ReceivedCommand], CrossbarChange]


class Language(ABC):
    """One vendor's TL1 on the switch's side. `reads` and `changes` map verbs to handlers.

    `greeting` is sent to each new client, `prompt` after every message; `echo` makes the switch echo commands. A read
    returns rows, a change a plan of changes; both raise `RefusalError`.
    """

    greeting: ClassVar[str] = ""
    prompt: ClassVar[str] = ""
    echo: ClassVar[bool] = False
    connect_seconds: ClassVar[float]

    def __init__(self, hardware: OpticalHardware, faults: Tl1Faults, sid: str) -> None:
        self.hardware = hardware
        self.faults = faults
        self.sid = sid
        self.reads: dict[str, Read] = {"RTRV-HDR": lambda _: []}
        self.changes: dict[str, Plan] = {}

    @abstractmethod
    def name_of(self, port: Port) -> str:
        """Return the switch's name of `port`."""

    def waits(self, _request: ReceivedCommand) -> bool:
        """Return True if a change is answered when it is done, False if before.

        Raises `RefusalError` if `request` asks for neither.
        """
        return True

    def check_target(self, request: ReceivedCommand) -> None:
        """Raise `RefusalError` if `request` is addressed to another network element."""
        if request.tid and request.tid != self.sid:
            raise RefusalError(SwitchRefusal.WRONG_TARGET, f"this is {self.sid}, not {request.tid}")

    def port_called(self, number: int, side: str) -> Port:
        """Return a port by number and side. Raises `RefusalError` if the switch does not have it."""
        crossbar = self.hardware.crossbar
        if side == "in" and 1 <= number <= crossbar.inputs:
            return Port("in", number)
        if side == "out" and 1 <= number <= crossbar.outputs:
            return Port("out", number)
        raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"there is no {side}put {number}")

    def circuit_at(self, port: Port) -> Circuit:
        """Return the circuit that begins or ends at `port`. Raises `RefusalError` if there is none."""
        crossbar = self.hardware.crossbar
        partner = crossbar.output_of(port.number) if port.side == "in" else crossbar.input_of(port.number)
        if partner is None:
            raise RefusalError(SwitchRefusal.NOT_CONNECTED, f"port {self.name_of(port)} is not connected")
        return Circuit(port.number, partner) if port.side == "in" else Circuit(partner, port.number)
