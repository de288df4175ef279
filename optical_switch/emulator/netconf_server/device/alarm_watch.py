"""Compares the power meters with the alarm thresholds after everything that can change a reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optical_switch.emulator.netconf_server.device.alarms import AlarmThresholds, PowerAlarm, PowerAlarms
from optical_switch.emulator.netconf_server.device.timers import RestartableTimer
from optical_switch.emulator.timing import Clock


class AlarmWatch:
    """The alarms of the meters, by the clock of the switch.

    Parameters
    ----------
    clock : Clock
        Source of time.
    read : Callable[[], Mapping[int, float]]
        Function that returns the power at every port, in dBm.
    report : Callable[[PowerAlarm], None]
        Function that is called with each alarm that begins or ends.
    """

    def __init__(
        self, clock: Clock, read: Callable[[], Mapping[int, float]], report: Callable[[PowerAlarm], None]
    ) -> None:
        self._clock = clock
        self._read = read
        self._report = report
        self._alarms = PowerAlarms()
        self._timer = RestartableTimer(clock, self._expire)
        self._thresholds: Mapping[int, AlarmThresholds] = {}
        self._hysteresis = 0.0

    def configure(self, thresholds: Mapping[int, AlarmThresholds], hysteresis: float) -> None:
        """Set the thresholds of the ports whose alarms are enabled, and the hysteresis in dB."""
        self._thresholds, self._hysteresis = thresholds, hysteresis
        self.look()

    def look(self) -> None:
        """Read the meters, and report the alarms that begin or end."""
        if not self._thresholds:
            self._timer.stop()
            return
        changes = self._alarms.update(self._clock.now(), self._read(), self._thresholds, self._hysteresis)
        due = self._alarms.next_end(self._thresholds)
        if due is None:
            self._timer.stop()
        else:
            self._timer.start(due)
        for change in changes:
            self._report(change)

    async def stop(self) -> None:
        """Stop the timer."""
        await self._timer.close()

    async def _expire(self) -> None:
        self.look()
