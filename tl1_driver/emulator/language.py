"""The vendor-specific part of an emulated TL1 agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from tl1_driver.emulator.crossbar import UNKNOWN_PORT, RefusalError
from tl1_driver.emulator.manual_circuits import CrossbarChange, ManualCircuits
from tl1_driver.emulator.requests import ReceivedCommand
from tl1_driver.protocol.circuits import Circuit, Port

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

    def __init__(self, bench: ManualCircuits) -> None:
        self.bench = bench
        self.reads: dict[str, Read] = {"RTRV-HDR": lambda _: []}
        self.changes: dict[str, Plan] = {}

    @abstractmethod
    def name_of(self, port: Port) -> str:
        """Return the switch's name of `port`."""

    def check_target(self, request: ReceivedCommand) -> None:
        """Raise `RefusalError` if `request` is addressed to another network element."""
        if request.tid and request.tid != self.bench.sid:
            raise RefusalError("IITA", f"this is {self.bench.sid}, not {request.tid}")

    def port_called(self, number: int, side: str) -> Port:
        """Return a port by number and side. Raises `RefusalError` if the switch does not have it."""
        crossbar = self.bench.crossbar
        if side == "in" and 1 <= number <= crossbar.inputs:
            return Port("in", number)
        if side == "out" and 1 <= number <= crossbar.outputs:
            return Port("out", number)
        raise RefusalError(UNKNOWN_PORT, f"there is no {side}put {number}")

    def circuit_at(self, port: Port) -> Circuit:
        """Return the circuit that begins or ends at `port`. Raises `RefusalError` if there is none."""
        crossbar = self.bench.crossbar
        partner = crossbar.output_of(port.number) if port.side == "in" else crossbar.input_of(port.number)
        if partner is None:
            raise RefusalError("SDNC", f"port {self.name_of(port)} is not connected")
        return Circuit(port.number, partner) if port.side == "in" else Circuit(partner, port.number)
