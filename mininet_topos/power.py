"""How much light there is at every port of the lab's optical switch, from fibres, splitters, circuits and breaks.

A ToR's transmitter shines as soon as its port is enabled, so each fibre from a ToR carries light all the time. Losses
are those of a data sheet, with connectors; there is no amplifier. Ports that are not named are dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mininet_topos.optical_fabric import Splitter
from tl1_driver.circuits import Circuit, Port

TRANSMITTED_DBM = 0.0
PASS_LOSS_DB = 1.5
"""One way through the switch."""
SPLITTER_LOSS_DB = {2: 4.3, 3: 6.2, 4: 7.4, 6: 9.8, 8: 10.7, 12: 12.5, 16: 13.9, 24: 16.5, 32: 17.2, 64: 21.5}
"""Planar splitters, 1260 to 1650 nm, by number of ways."""


def splitter_loss(ways: int) -> float:
    """dB from the input of a 1:`ways` splitter to any leg; a size that is not made is cut from the next larger one."""
    return next(loss for size, loss in SPLITTER_LOSS_DB.items() if size >= ways)


@dataclass
class PowerModel:
    """The light in a lab whose ToRs feed the inputs `transmitters`; `broken` may change at any time.

    Fibres into the switch are broken before its monitor, fibres out of it at the monitor: both read dark.
    """

    transmitters: Sequence[int]
    splitters: Sequence[Splitter]
    broken: set[Port] = field(default_factory=set)

    def __call__(self, circuits: Sequence[Circuit]) -> Mapping[Port, float]:
        """dBm at every lit port. The circuits must be free of loops."""
        targets = {circuit.input: circuit.output for circuit in circuits}
        hung = {splitter.input: splitter for splitter in self.splitters}
        powers: dict[Port, float] = {}
        arriving = [(number, TRANSMITTED_DBM) for number in self.transmitters]
        while arriving:
            number, power = arriving.pop()
            if not self._lit(powers, Port("in", number), power) or number not in targets:
                continue
            output, power = targets[number], power - PASS_LOSS_DB
            if self._lit(powers, Port("out", output), power) and output in hung:
                power -= splitter_loss(hung[output].ways)
                arriving += [(leg, power) for leg in hung[output].outputs]
        return powers

    def _lit(self, powers: dict[Port, float], port: Port, power: float) -> bool:
        if port in self.broken:
            return False
        powers[port] = power
        return True


def transmitter_inputs(ports: int, splitters: Iterable[Splitter]) -> list[int]:
    """The inputs of a switch with duplex ports 1..`ports` that no splitter's leg enters."""
    legs = {leg for splitter in splitters for leg in splitter.outputs}
    return [number for number in range(1, ports + 1) if number not in legs]
