"""Faults that a test or a demonstration injects while an emulated switch runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal, ends
from optical_switch.model import Circuit, Port


@dataclass
class Faults:
    """Injectable faults. Set any of these at any time; each takes effect with the next command.

    A *change* is a command that sets or removes circuits. Agents add the faults of their protocol.
    """

    refused_inputs: set[int] = field(default_factory=set)
    """Connecting one of these inputs is refused, and with it the whole change."""

    refused_outputs: set[int] = field(default_factory=set)
    """Connecting one of these outputs is refused, and with it the whole change."""

    stuck_inputs: set[int] = field(default_factory=set)
    """The mirrors of these inputs do not settle: a circuit there fails after the switching time, the others are set."""

    dead_ports: set[Port] = field(default_factory=set)
    """Ports that have failed: a circuit there fails, even if it was set before."""

    refuse_all: bool = False
    """Every command is refused and nothing is done."""

    silent: bool = False
    """Every command is dropped: nothing is done and nothing answered."""

    cut_before_answer: bool = False
    """A change is carried out, then the connection is cut in place of the answer."""

    lose_answer: bool = False
    """A change is carried out, but its answer is lost."""

    answer_delay: float = 0.0
    """Seconds by which every answer is delayed after the work is done."""

    max_sessions: int | None = None
    """Sessions that the switch takes at a time; a further one is refused."""

    partial_bulk: bool = False
    """A change that is to be refused sets the circuits before the offending one first."""

    slow_inputs: dict[int, float] = field(default_factory=dict)
    """Additional settling time of the mirrors of these inputs, in seconds."""

    late_list: float = 0.0
    """Seconds by which the list of circuits lags behind."""

    dark_ports: set[Port] = field(default_factory=set)
    """Ports that measure no power; the outputs connected to a dark input are dark too."""

    power_error_db: dict[Port, float] = field(default_factory=dict)
    """Error of the meter at a port, in dB: above 0, it reads too high."""

    extra_loss_db: dict[Circuit, float] = field(default_factory=dict)
    """Loss of a circuit in addition to the usual one, in dB: less power leaves its output."""

    drift_db_per_second: dict[Port, float] = field(default_factory=dict)
    """Rate at which the loss before these ports grows, from their first measurement."""

    def settling_seconds(self, circuits: Iterable[Circuit]) -> float:
        """Return the additional time of a change that sets `circuits`."""
        return max((self.slow_inputs.get(circuit.input, 0.0) for circuit in circuits), default=0.0)

    def check_connect(self, circuits: Iterable[Circuit]) -> None:
        """Raise `RefusalError` if one of `circuits` is to be refused."""
        if not (self.refused_inputs or self.refused_outputs):
            return
        for circuit in circuits:
            refused = self.refused_inputs, self.refused_outputs
            blamed = [port for port, numbers in zip(ends(circuit), refused, strict=True) if port.number in numbers]
            if blamed:
                text = f"connecting {circuit.input} to {circuit.output} failed"
                raise RefusalError(SwitchRefusal.FAILED, text, blamed)

    def failing(self, circuits: Iterable[Circuit]) -> dict[Circuit, tuple[Port, str]]:
        """Return those of `circuits` that fail when they are set, each with the port to blame and the cause."""
        failing: dict[Circuit, tuple[Port, str]] = {}
        if not (self.stuck_inputs or self.dead_ports):
            return failing
        for circuit in circuits:
            if circuit.input in self.stuck_inputs:
                failing[circuit] = ends(circuit)[0], f"the mirrors of input {circuit.input} do not settle"
            for port in self.dead_ends(circuit):
                failing[circuit] = port, has_failed(port)
        return failing

    def dead_ends(self, circuit: Circuit) -> list[Port]:
        """Return the ports of a circuit that have failed."""
        return [port for port in ends(circuit) if port in self.dead_ports] if self.dead_ports else []


def has_failed(port: Port) -> str:
    """Return the cause that a switch names for a circuit at a port that has failed."""
    return f"{port.side}put {port.number} has failed"
