"""Subscriptions and notifications (RFC 5277), by raw bytes over SSH."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from optical_switch.emulator.netconf_server import channel
from optical_switch.emulator.netconf_server.device.events import Activity
from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.model import Circuit, Port
from tests.optical_switch.netconf_server.raw_client import (
    NAMES,
    OPSW,
    PLTS,
    NetconfLab,
    RawSession,
    cross_connects,
    edit,
    netconf_lab,
    removed,
)
from tests.support.waiting import eventually_async

N = NAMES["n"]


def subscription(inside: str = "") -> str:
    return f'<create-subscription xmlns="{N}">{inside}</create-subscription>'


async def event(session: RawSession) -> dict[str, str]:
    """Return the leaves of the next notification, and its name."""
    message = await session.read()
    assert message.tag == f"{{{N}}}notification" and len(message) == 2, ET.tostring(message)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", message.findtext("n:eventTime", "", NAMES))
    content = message[1]
    return {"": content.tag.partition("}")[2]} | {one.tag.partition("}")[2]: one.text or "" for one in content}


def alarms(port: int, **leaves: str) -> str:
    """Return an edit that enables the alarms of a port."""
    leaves = {"mode": "POWER_ALARM_ENABLED"} | {name.replace("_", "-"): text for name, text in leaves.items()}
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in leaves.items())
    return edit(
        f'<opm-alarm-config xmlns="{OPSW}"><port><port-id>{port}</port-id>{inside}</port></opm-alarm-config>'
        f'<port-config xmlns="{OPSW}"><port><port-id>{port}</port-id><label>spine {port}</label></port></port-config>'
    )


class Powers:
    """A model of the power that a test changes."""

    def __init__(self) -> None:
        self.dbm: dict[Port, float] = {Port("in", 1): -3.0}

    def __call__(self, _circuits: object) -> dict[Port, float]:
        return self.dbm


async def test_alarm_is_notified_when_power_crosses_threshold_and_returns() -> None:
    powers = Powers()
    async with netconf_lab(power=powers) as lab:
        session = await lab.session()
        await session.ok(subscription())
        await session.ok(alarms(1, signal_low_threshold="-20", alarm_clear_holdoff="10"))
        await session.ok("<commit/>")
        lab.switch.faults.dark_ports.add(Port("in", 1))
        lab.switch.hardware.changed()
        assert await event(session) == {"": "port-power-alarm", "port-id": "1", "port-label": "spine 1"}
        lab.switch.faults.dark_ports.clear()
        lab.switch.hardware.changed()
        await eventually_async(lambda: lab.time.sleepers == 1, "the hold-off")
        lab.time.advance(10)
        assert await event(session) == {"": "port-power-clear", "port-id": "1", "port-label": "spine 1"}


async def test_warning_is_notified_at_degrade_threshold() -> None:
    powers = Powers()
    async with netconf_lab(power=powers) as lab:
        session = await lab.session()
        await session.ok(subscription("<stream>Polatis</stream>"))
        await session.ok(alarms(1, signal_degrade_threshold="-5"))
        await session.ok("<commit/>")
        powers.dbm = {Port("in", 1): -5.01}
        lab.switch.hardware.changed()
        assert (await event(session))[""] == "port-power-warn-alarm"
        # The default hysteresis is 1 dB.
        powers.dbm = {Port("in", 1): -4.0}
        lab.switch.hardware.changed()
        assert (await event(session))[""] == "port-power-warn-clear"


async def test_alarm_of_port_that_is_dark_already_is_notified_at_commit() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(subscription())
        await session.ok(alarms(2, signal_low_threshold="-20"))
        number = session.request("<commit/>")
        assert (await event(session))["port-id"] == "2"
        assert (await session.read()).get("message-id") == str(number)


async def test_notifications_follow_the_reply_of_subscription() -> None:
    """RFC 5277 section 2.1.1."""
    async with netconf_lab() as lab:
        lab.switch.faults.answer_delay = 5.0
        session = await lab.session()
        number = session.request(subscription())
        await eventually_async(lambda: lab.time.sleepers == 1, "the delayed answer")
        await enable_log(lab)
        await lab.switch.another_writer(Circuit(1, 1))
        lab.time.advance(5)
        assert (await session.read()).get("message-id") == str(number)
        await lab.switch.another_writer(Circuit(2, 2))
        assert (await event(session))["notification-activity"] == "connected 2-10"


async def enable_log(lab: NetconfLab, access: str = "NONE") -> None:
    """Enable the activity log."""
    delay, lab.switch.faults.answer_delay = lab.switch.faults.answer_delay, 0.0
    admin = await lab.session()
    await admin.ok(
        edit(
            f'<system-config xmlns="{OPSW}"><activity-log><logging-enabled>true</logging-enabled>'
            f"<log-access>{access}</log-access></activity-log></system-config>"
        )
    )
    await admin.ok("<commit/>")
    lab.switch.faults.answer_delay = delay


async def test_changes_are_notified_if_the_log_is_enabled() -> None:
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session(user="user")
        await session.ok(subscription())
        await other.connect((1, 9), (2, 10))
        await enable_log(lab)
        assert (await event(session))["notification-activity"] == "changed system-config"
        await other.ok(edit(removed(2) + cross_connects((1, 12))))
        await other.ok("<commit/>")
        assert await event(session) == {
            "": "activity-log-notification",
            "notification-username": "user",
            "notification-ip-address": "127.0.0.1",
            "notification-protocol": "NETCONF",
            "notification-activity": "removed 1-9, removed 2-10, connected 1-12",
        }
        # A commit without changes is no activity.
        await other.ok("<commit/>")
        await other.ok(f'<port-set-state xmlns="{OPSW}"><port-disab>1</port-disab></port-set-state>')
        assert (await event(session))["notification-activity"] == "disabled port 1"
        await lab.switch.another_writer(Circuit(3, 3), "operator")
        found = await event(session)
        assert (found["notification-username"], found["notification-protocol"]) == ("operator", "front panel")


@pytest.mark.parametrize(("access", "activities"), [("NONE", []), ("SELF", ["1-9"]), ("ALL", ["1-9", "2-10"])])
async def test_log_access_limits_readers_outside_admin(access: str, activities: list[str]) -> None:
    async with netconf_lab() as lab:
        await enable_log(lab, access)
        reader, admin = await lab.session(user="user"), await lab.session()
        await reader.ok(subscription())
        await reader.ok(edit(cross_connects((1, 9))))
        number = reader.request("<commit/>")
        found = []
        while (message := await reader.read()).tag == f"{{{N}}}notification":
            found.append(message)
        assert message.get("message-id") == str(number)
        await admin.connect((2, 10))
        number = reader.request("<discard-changes/>")
        while (message := await reader.read()).tag == f"{{{N}}}notification":
            found.append(message)
        texts = [one.findtext("*/p:notification-activity", "", NAMES) for one in found]
        assert texts == [f"connected {one}" for one in activities]


async def test_filter_chooses_notifications() -> None:
    """RFC 5277 section 2.1.1; a notification that passes is sent whole (section 3.6)."""
    powers = Powers()
    async with netconf_lab(power=powers) as lab:
        session = await lab.session()
        chosen = f'<port-power-alarm xmlns="{PLTS}"><port-id>2</port-id></port-power-alarm>'
        await session.ok(subscription(f"<filter>{chosen}</filter>"))
        for port in (1, 2):
            await session.ok(alarms(port, signal_low_threshold="-20"))
        session.request("<commit/>")
        assert await event(session) == {"": "port-power-alarm", "port-id": "2", "port-label": "spine 2"}
        await session.read()
        powers.dbm = {}
        lab.switch.hardware.changed()
        await session.ok("<discard-changes/>")


@pytest.mark.parametrize(
    ("inside", "tag", "bad"),
    [
        ("<stream>SNMP</stream>", "invalid-value", "stream"),
        ("<startTime>2024-01-01T00:00:00Z</startTime>", "operation-failed", None),
        ("<stopTime>2024-01-01T00:00:00Z</stopTime>", "missing-element", "startTime"),
        ('<filter type="xpath" select="/"/>', "bad-attribute", "filter"),
        ("<other/>", "unknown-element", "other"),
    ],
)
async def test_wrong_subscription_is_refused(inside: str, tag: str, bad: str | None) -> None:
    """RFC 5277 section 2.1.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        error = await session.error(subscription(inside))
        assert (error.tag, error.info.get("bad-element")) == (tag, bad)
        await session.ok(subscription())


async def test_session_has_one_subscription() -> None:
    """RFC 5277 section 2.1.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(subscription())
        assert (await session.error(subscription())).tag == "operation-failed"


async def test_subscribed_session_is_only_closed_without_interleave() -> None:
    """RFC 5277 section 6."""
    async with netconf_lab(without=[AnnouncedFeature.INTERLEAVE]) as lab:
        session = await lab.session()
        await session.ok(subscription())
        assert (await session.error("<get/>")).tag == "operation-not-supported"
        await session.ok("<close-session/>")


async def test_notifications_must_be_announced() -> None:
    """RFC 5277 section 3.1."""
    async with netconf_lab(without=[AnnouncedFeature.NOTIFICATION]) as lab:
        session = await lab.session()
        assert (await session.error(subscription())).tag == "operation-not-supported"


async def test_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_UNSENT", 1 << 16)
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(subscription())
        await enable_log(lab)
        session.writer.channel.pause_reading()
        for number in range(20_000):
            lab.switch._operations.configuration.log_activity(_activity(number))
            if session.number not in lab.switch.sessions:
                break
            if number % 100 == 0:
                await other.ok("<discard-changes/>")
        await eventually_async(lambda: session.number not in lab.switch.sessions, "the session to end")
        await other.ok("<discard-changes/>")


def _activity(number: int) -> Activity:
    return Activity("noc", "", "front panel", f"{number} " + "x" * 1000)
