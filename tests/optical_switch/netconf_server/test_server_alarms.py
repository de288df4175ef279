"""Alarms of the power meters, without a connection."""

from __future__ import annotations

from optical_switch.emulator.netconf_server.device.alarms import AlarmThresholds, PowerAlarm, PowerAlarms

LIMITS = {3: AlarmThresholds(low=-20.0, degrade=-10.0, high=5.0, holdoff=2.0)}
LOSS, WARNING = "port-power-alarm", "port-power-warn-alarm"


def test_alarm_begins_beyond_thresholds_once() -> None:
    alarms = PowerAlarms()
    assert alarms.update(0, {3: -10.0}, LIMITS, 1) == []
    assert alarms.update(1, {3: -10.1}, LIMITS, 1) == [PowerAlarm(3, WARNING, True)]
    assert alarms.update(2, {3: -20.1}, LIMITS, 1) == [PowerAlarm(3, LOSS, True)]
    assert alarms.update(3, {3: -48.5}, LIMITS, 1) == []
    assert alarms.update(3, {3: 5.1}, LIMITS, 1) == []
    assert PowerAlarms().update(0, {3: 5.1}, LIMITS, 1) == [PowerAlarm(3, LOSS, True)]


def test_alarm_ends_beyond_hysteresis_after_holdoff() -> None:
    alarms = PowerAlarms()
    alarms.update(0, {3: -21.0}, LIMITS, 1)
    assert alarms.update(1, {3: -19.1}, LIMITS, 1) == [] and alarms.next_end(LIMITS) is None
    assert alarms.update(2, {3: -19.0}, LIMITS, 1) == [] and alarms.next_end(LIMITS) == 4.0
    assert alarms.update(3.9, {3: -19.0}, LIMITS, 1) == [] and alarms.next_end(LIMITS) == 4.0
    assert alarms.update(4, {3: -19.0}, LIMITS, 1) == [PowerAlarm(3, LOSS, False)]
    # The warning remains: its threshold is higher.
    assert alarms.next_end(LIMITS) is None
    assert alarms.update(9, {3: -5.0}, LIMITS, 1) == []
    assert alarms.update(11, {3: -5.0}, LIMITS, 1) == [PowerAlarm(3, WARNING, False)]


def test_holdoff_begins_again_after_relapse() -> None:
    alarms = PowerAlarms()
    alarms.update(0, {3: -21.0}, LIMITS, 1)
    alarms.update(1, {3: 0.0}, LIMITS, 1)
    alarms.update(2, {3: -21.0}, LIMITS, 1)
    assert alarms.next_end(LIMITS) is None
    assert alarms.update(10, {3: 0.0}, LIMITS, 1) == [] and alarms.next_end(LIMITS) == 12.0


def test_disabled_alarms_end_silently() -> None:
    alarms = PowerAlarms()
    alarms.update(0, {3: -21.0}, LIMITS, 1)
    assert alarms.update(1, {3: 0.0}, {}, 1) == [] and alarms.next_end({}) is None
    assert alarms.update(2, {3: -21.0}, LIMITS, 1) == [PowerAlarm(3, LOSS, True), PowerAlarm(3, WARNING, True)]
