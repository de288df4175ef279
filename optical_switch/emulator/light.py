"""Optical power as the emulated switch measures it: a model of the fibers, and injected faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from optical_switch.emulator.faults import Faults
from optical_switch.model import DARK_BELOW_DBM, Circuit, Port

DARK_DBM = -48.5
"""Reading of the monitor at a dark port, in dBm: the value that real switches show."""

PowerModel = Callable[[Sequence[Circuit]], Mapping[Port, float]]
"""The power at each lit port in dBm, given the circuits; ports left out are dark."""


def no_light(_circuits: Sequence[Circuit]) -> Mapping[Port, float]:
    """Return no power at any port: the model of a switch without transmitters."""
    return {}


class PowerMonitors:
    """The readings of the power monitors, and the connected inputs that have gone dark or are lit again."""

    def __init__(self, model: PowerModel, faults: Faults, now: Callable[[], float]) -> None:
        self._model = model
        self._faults = faults
        self._now = now
        self._drifts_since: dict[Port, float] = {}
        self._lit: set[Port] = set()
        self._dark: set[Port] = set()

    @property
    def is_modeled(self) -> bool:
        """True if a power model is configured, so that readings can change."""
        return self._model is not no_light

    def powers(self, circuits: Sequence[Circuit]) -> dict[Port, float]:
        """Return the power at each lit port, in dBm, as its meter shows it."""
        powers = dict(self._model(circuits))
        for port, loss in self._losses(circuits):
            if port in powers:
                powers[port] -= loss
        for port in self._darkened(circuits):
            powers.pop(port, None)
        for port, error in self._faults.power_error_db.items():
            if port in powers:
                powers[port] += error
        return powers

    def changes(self, circuits: Sequence[Circuit]) -> tuple[list[Port], list[Port]]:
        """Return the connected inputs that have gone dark, and the formerly dark ones that are lit again."""
        powers = self.powers(circuits)
        connected = {Port("in", circuit.input) for circuit in circuits}
        lit = {port for port in connected if powers.get(port, DARK_DBM) >= DARK_BELOW_DBM}
        darkened = sorted((self._lit & connected) - lit)
        relit = sorted(self._dark & lit)
        self._dark = (self._dark & connected | set(darkened)) - lit
        self._lit = lit
        return darkened, relit

    def _losses(self, circuits: Sequence[Circuit]) -> list[tuple[Port, float]]:
        """Return the losses in dB that faults add before the meters of these ports."""
        losses = [
            (Port("out", circuit.output), loss)
            for circuit, loss in self._faults.extra_loss_db.items()
            if circuit in circuits
        ]
        for port, rate in self._faults.drift_db_per_second.items():
            since = self._drifts_since.setdefault(port, self._now())
            losses.append((port, rate * (self._now() - since)))
        return losses

    def _darkened(self, circuits: Sequence[Circuit]) -> set[Port]:
        """Return the ports that are dark by a fault: an input also darkens the output to which it is connected."""
        dark = self._faults.dark_ports | self._faults.dead_ports
        if not dark:
            return dark
        return dark | {Port("out", c.output) for c in circuits if Port("in", c.input) in dark}
