"""Notifications of the modules, and their message (RFC 5277)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.data.subtree import select
from optical_switch.emulator.netconf_server.device.alarms import PowerAlarm
from optical_switch.emulator.netconf_server.messages.names import NOTIFICATION, POLATIS_SWITCH
from optical_switch.emulator.netconf_server.messages.xml_text import element

STREAM_NAMES = {
    "NETCONF": "All notifications of the device.",
    "Polatis": "Notifications of the module polatis-switch.",
}
"""The stream that RFC 5277 section 3.2.3 requires, and that of the module; both carry the same notifications."""

MAX_ACTIVITY = 200
"""Characters of the text of an activity: a sentence or two."""


@dataclass(frozen=True, slots=True)
class Activity:
    """A change of the configuration: by which user, from where, how, and of what."""

    user: str
    address: str
    protocol: str
    text: str


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """A subscription of a session: the elements of its filter; None: all notifications."""

    filters: tuple[ET.Element, ...] | None = None

    def passes(self, event: ET.Element) -> bool:
        """Return whether the session gets a notification."""
        return self.filters is None or bool(select(self.filters, [event]))


def alarm_event(alarm: PowerAlarm, label: str) -> ET.Element:
    """Return the notification of an alarm that begins or ends."""
    name: str = alarm.kind if alarm.active else alarm.kind.replace("alarm", "clear")
    return _event(name, {"port-id": str(alarm.port), "port-label": label})


def activity_event(activity: Activity) -> ET.Element:
    """Return the notification of a change of the configuration."""
    leaves = {
        "notification-username": activity.user,
        "notification-ip-address": activity.address,
        "notification-protocol": activity.protocol,
        "notification-activity": activity.text[:MAX_ACTIVITY],
    }
    return _event("activity-log-notification", {name: text for name, text in leaves.items() if text})


def hardware_failure_event(text: str) -> ET.Element:
    """Return the notification of mirrors or of a port that failed."""
    return _event("system-error", {"error-code": "1", "switch-status": "REQUEST_SERVICE", "message": text})


def notification(event: ET.Element, date: datetime) -> ET.Element:
    """Return the message of a notification (section 4)."""
    time = element(NOTIFICATION, "eventTime", f"{date.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z")
    return element(NOTIFICATION, "notification", children=[time, event])


def _event(name: str, leaves: dict[str, str]) -> ET.Element:
    children = [element(POLATIS_SWITCH, leaf, text) for leaf, text in leaves.items()]
    return element(POLATIS_SWITCH, name, children=children)
