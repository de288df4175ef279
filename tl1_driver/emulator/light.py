"""The light that the emulated switch measures: a model of the fibers, and the faults upon it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tl1_driver.circuits import DARK_BELOW_DBM, Circuit, Port
from tl1_driver.emulator.faults import Faults

DARK_DBM = -48.5
"""What the monitor of a port without light reads."""

PowerModel = Callable[[Sequence[Circuit]], Mapping[Port, float]]
"""The power at each lit port in dBm, given the circuits; ports left out are dark."""


def no_light(_circuits: Sequence[Circuit]) -> Mapping[Port, float]:
    """The model of a switch without any transmitter."""
    return {}


class Light:
    """What the monitors read, and which connected inputs have lost or found their light since the last look."""

    def __init__(self, model: PowerModel, faults: Faults, now: Callable[[], float]) -> None:
        self._model = model
        self._faults = faults
        self._now = now
        self._drifts_since: dict[Port, float] = {}
        self._lit: set[Port] = set()
        self._dark: set[Port] = set()

    @property
    def is_modeled(self) -> bool:
        """Whether there is any light that could change."""
        return self._model is not no_light

    def powers(self, circuits: Sequence[Circuit]) -> dict[Port, float]:
        """The power at each lit port, in dBm."""
        powers = dict(self._model(circuits))
        for port, rate in self._faults.drift_db_per_second.items():
            since = self._drifts_since.setdefault(port, self._now())
            if port in powers:
                powers[port] -= rate * (self._now() - since)
        for port in self._faults.dark_ports:
            powers.pop(port, None)
            if port.side == "in":
                for circuit in circuits:
                    if circuit.input == port.number:
                        powers.pop(Port("out", circuit.output), None)
        return powers

    def changes(self, circuits: Sequence[Circuit]) -> tuple[list[Port], list[Port]]:
        """The connected inputs that have gone dark, and those that went dark before and are lit again."""
        powers = self.powers(circuits)
        connected = {Port("in", circuit.input) for circuit in circuits}
        lit = {port for port in connected if powers.get(port, DARK_DBM) >= DARK_BELOW_DBM}
        gone = sorted((self._lit & connected) - lit)
        back = sorted(self._dark & lit)
        self._dark = (self._dark & connected | set(gone)) - lit
        self._lit = lit
        return gone, back
