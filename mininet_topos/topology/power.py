"""Optical power at every port of the lab's optical switch, from fibers, splitters, circuits and breaks.

A ToR's transmitter is on as soon as its port is enabled, so each fiber from a ToR is always lit. Losses are those of a
data sheet, with connectors, and may grow while the lab runs; there is no amplifier. Unnamed ports are dark. A receiver
below its sensitivity receives nothing, although the monitor before it still reads power.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mininet_topos.topology.optical_fabric import EmulatedSplitter
from optical_switch.emulator.crossbar import ends
from optical_switch.emulator.hardware import PASS_LOSS_DB
from optical_switch.model import Circuit, Port

TRANSMITTED_DBM = 0.0
SENSITIVITY_DBM = -30.0
"""Sensitivity of a receiver: the default of `dark_threshold_dbm`, so that packets and light checks agree."""
OVERLOAD_DBM = 3.0
"""Overload of a receiver; no lab transmitter reaches it."""
SPLITTER_LOSS_DB = {2: 4.3, 3: 6.2, 4: 7.4, 6: 9.8, 8: 10.7, 12: 12.5, 16: 13.9, 24: 16.5, 32: 17.2, 64: 21.5}
"""Planar splitters, 1260 to 1650 nm, by fan-out."""


def splitter_loss(fan_out: int) -> float:
    """Return the dB from the input of a 1:`fan_out` splitter to any output.

    Odd sizes are cut from the next larger one.
    """
    return next(loss for size, loss in SPLITTER_LOSS_DB.items() if size >= fan_out)


@dataclass
class PowerModel:
    """The power in a lab whose ToRs feed the inputs `transmitters`; `broken` and `dimmed` may change at any time.

    Fibers into the switch are broken before its monitor, fibers out of it at the monitor: both read dark. `dimmed` is a
    fiber's loss in addition to the data sheet, in dB, at the same place. `raised` is the additional loss within the
    switch, in dB, of every circuit at a port.
    """

    transmitters: Sequence[int]
    splitters: Sequence[EmulatedSplitter]
    broken: set[Port] = field(default_factory=set)
    dimmed: dict[Port, float] = field(default_factory=dict)
    raised: dict[Port, float] = field(default_factory=dict)

    def __call__(self, circuits: Sequence[Circuit]) -> Mapping[Port, float]:
        """Return the power in dBm at every lit port, for the emulated hardware.

        The hardware itself subtracts the additional loss of a circuit at its output, so that it is left out there.
        """
        powers = self.powers(circuits)
        for circuit in circuits:
            if (output := ends(circuit)[1]) in powers:
                powers[output] += self.extra_loss(circuit)
        return powers

    def extra_loss(self, circuit: Circuit) -> float:
        """Return the additional loss of a circuit within the switch, in dB."""
        return sum(self.raised.get(port, 0.0) for port in ends(circuit))

    def powers(self, circuits: Sequence[Circuit]) -> dict[Port, float]:
        """Return the power in dBm at every lit port.

        The circuits must be free of loops.
        """
        targets = {circuit.input: circuit.output for circuit in circuits}
        hung = {splitter.input: splitter for splitter in self.splitters}
        powers: dict[Port, float] = {}
        arriving = [(number, TRANSMITTED_DBM) for number in self.transmitters]
        while arriving:
            number, power = arriving.pop()
            entered = self._light(powers, Port("in", number), power)
            if entered is None or number not in targets:
                continue
            output = targets[number]
            passed = entered - PASS_LOSS_DB - self.extra_loss(Circuit(number, output))
            left = self._light(powers, Port("out", output), passed)
            if left is not None and output in hung:
                split = left - splitter_loss(hung[output].fan_out)
                arriving += [(entered, split) for entered in hung[output].outputs]
        return powers

    def _light(self, powers: dict[Port, float], port: Port, power: float) -> float | None:
        if port in self.broken:
            return None
        powers[port] = power - self.dimmed.get(port, 0.0)
        return powers[port]

    def too_dark(self, circuits: Sequence[Circuit]) -> set[Port]:
        """Return the outputs to receivers that are lit, but below their sensitivity."""
        fed = {splitter.input for splitter in self.splitters}
        return {
            port
            for port, power in self.powers(circuits).items()
            if port.side == "out" and port.number not in fed and power < SENSITIVITY_DBM
        }


def transmitter_inputs(ports: int, splitters: Iterable[EmulatedSplitter]) -> list[int]:
    """Return the inputs of a switch with duplex ports 1..`ports` that no splitter's output enters."""
    outputs = {output for splitter in splitters for output in splitter.outputs}
    return [number for number in range(1, ports + 1) if number not in outputs]
