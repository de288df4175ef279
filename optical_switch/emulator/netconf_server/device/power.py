"""Power at the meters behind shutters and variable optical attenuators (VOA)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.light import DARK_DBM
from optical_switch.emulator.netconf_server.device.shutters import ShutteredPaths
from optical_switch.model import Circuit, Port

MAX_ATTENUATION_DB = 20.0
"""The range of an attenuator, in dB: a usual value in the data sheets of attenuating MEMS switches."""


@dataclass(frozen=True, slots=True)
class AttenuatorSetting:
    """The leaves of `voa/port`: the level in dBm, or in dB relative to the input, and 0 for the connected ingress."""

    mode: str = "VOA_MODE_NONE"
    level: float = 0.0
    reference: int = 0


class AttenuatedPowers:
    """Readings of the power meters.

    An attenuator limits the power at its egress port by at most `MAX_ATTENUATION_DB`, controlled by the meter there. In
    the modes `CONVERGED` and `FIXED` it keeps the attenuation that it had when the mode was set.
    """

    def __init__(self, hardware: OpticalHardware, shutters: ShutteredPaths) -> None:
        self._hardware = hardware
        self._shutters = shutters
        self._settings: Mapping[int, AttenuatorSetting] = {}
        self._kept: dict[int, float] = {}

    def configure(self, settings: Mapping[int, AttenuatorSetting]) -> None:
        """Set the attenuators of some outputs; all others do not attenuate."""
        powers = self._passing()
        inputs = self._inputs()
        for output, setting in settings.items():
            former = self._settings.get(output, AttenuatorSetting())
            if setting == former:
                continue
            if setting.mode == "VOA_MODE_FIXED":
                self._kept[output] = self._attenuation(output, former, powers, inputs)
            elif setting.mode == "VOA_MODE_CONVERGED":
                absolute = AttenuatorSetting("VOA_MODE_ABSOLUTE", setting.level)
                self._kept[output] = self._attenuation(output, absolute, powers, inputs)
        self._settings = dict(settings)

    def readings(self) -> dict[Port, float]:
        """Return the power at each lit port, in dBm."""
        powers = self._passing()
        inputs = self._inputs()
        attenuations = {
            output: self._attenuation(output, setting, powers, inputs) for output, setting in self._settings.items()
        }
        return {
            port: power - (attenuations.get(port.number, 0.0) if port.side == "out" else 0.0)
            for port, power in powers.items()
        }

    def _inputs(self) -> dict[int, int]:
        return {circuit.output: circuit.input for circuit in self._hardware.crossbar.circuits}

    def _passing(self) -> dict[Port, float]:
        """Return the power that passes the shutters. The meter of an input is before its shutter."""
        powers = self._hardware.powers()
        for circuit in self._hardware.crossbar.circuits:
            if self._is_blocked(circuit):
                powers.pop(Port("out", circuit.output), None)
        return powers

    def _is_blocked(self, circuit: Circuit) -> bool:
        closed = self._shutters.closed
        return Port("in", circuit.input) in closed or Port("out", circuit.output) in closed

    def _attenuation(
        self, output: int, setting: AttenuatorSetting, powers: Mapping[Port, float], inputs: Mapping[int, int]
    ) -> float:
        power = powers.get(Port("out", output), DARK_DBM)
        match setting.mode:
            case "VOA_MODE_ABSOLUTE":
                excess = power - setting.level
            case "VOA_MODE_RELATIVE":
                reference = Port("in", setting.reference or inputs.get(output, 0))
                excess = power - (powers.get(reference, DARK_DBM) + setting.level)
            case "VOA_MODE_MAXIMUM":
                excess = MAX_ATTENUATION_DB
            case "VOA_MODE_CONVERGED" | "VOA_MODE_FIXED":
                excess = self._kept.get(output, 0.0)
            case _:
                excess = 0.0
        return min(max(excess, 0.0), MAX_ATTENUATION_DB)
