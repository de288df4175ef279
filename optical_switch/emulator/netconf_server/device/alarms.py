"""Alarms of the power meters (`opm-alarm-config`): which begin, which end, and when to look again.

A reading beyond a threshold begins an alarm at once. It ends when the reading has been within the thresholds, by the
hysteresis, for the hold-off time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

AlarmKind = Literal["port-power-alarm", "port-power-warn-alarm"]
"""Loss of service (`signal-low-threshold`, `signal-high-threshold`), or a warning (`signal-degrade-threshold`)."""


@dataclass(frozen=True, slots=True)
class AlarmThresholds:
    """The leaves of `opm-alarm-config/port`, in dBm and seconds."""

    low: float
    degrade: float
    high: float
    holdoff: float


class PowerAlarm(NamedTuple):
    """An alarm that begins, or that ends."""

    port: int
    kind: AlarmKind
    active: bool


class PowerAlarms:
    """The alarms that are active."""

    def __init__(self) -> None:
        # When the reading came back within the thresholds; None while it is beyond them.
        self._active: dict[tuple[int, AlarmKind], float | None] = {}

    def update(
        self, now: float, powers: Mapping[int, float], thresholds: Mapping[int, AlarmThresholds], hysteresis: float
    ) -> list[PowerAlarm]:
        """Take new readings.

        Parameters
        ----------
        now : float
            Time in seconds.
        powers : Mapping[int, float]
            Power at each port that has thresholds, in dBm.
        thresholds : Mapping[int, AlarmThresholds]
            Thresholds of the ports whose alarms are enabled. The alarms of other ports end silently.
        hysteresis : float
            Distance from a threshold at which an alarm may end, in dB.

        Returns
        -------
        list[PowerAlarm]
            Alarms that begin or end.
        """
        self._active = {alarm: since for alarm, since in self._active.items() if alarm[0] in thresholds}
        changes: list[PowerAlarm] = []
        for port, limits in thresholds.items():
            for kind, low, high in _ranges(limits):
                self._update_one(now, (port, kind), (powers[port], low, high, hysteresis, limits.holdoff), changes)
        return changes

    def next_end(self, thresholds: Mapping[int, AlarmThresholds]) -> float | None:
        """Return when the next alarm ends if the readings stay as they are; None: none does."""
        ends = [since + thresholds[port].holdoff for (port, _), since in self._active.items() if since is not None]
        return min(ends, default=None)

    def _update_one(
        self,
        now: float,
        alarm: tuple[int, AlarmKind],
        reading: tuple[float, float, float, float, float],
        changes: list[PowerAlarm],
    ) -> None:
        power, low, high, hysteresis, holdoff = reading
        if not low <= power <= high:
            if alarm not in self._active:
                changes.append(PowerAlarm(*alarm, active=True))
            self._active[alarm] = None
        elif alarm in self._active:
            if not low + hysteresis <= power <= high - hysteresis:
                self._active[alarm] = None
                return
            since = self._active[alarm]
            since = now if since is None else since
            self._active[alarm] = since
            if now >= since + holdoff:
                del self._active[alarm]
                changes.append(PowerAlarm(*alarm, active=False))


def _ranges(limits: AlarmThresholds) -> list[tuple[AlarmKind, float, float]]:
    return [
        ("port-power-alarm", limits.low, limits.high),
        ("port-power-warn-alarm", limits.degrade, float("inf")),
    ]
