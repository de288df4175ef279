"""The sessions of the device, which get its notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.device.events import notification
from optical_switch.emulator.netconf_server.session import ServedSession
from optical_switch.emulator.timing import Clock


class SessionChannel(Protocol):
    """The connection of a session."""

    @property
    def session(self) -> ServedSession:
        """The session."""

    def send(self, data: bytes) -> None:
        """Send the bytes of a message, unless the session has ended."""

    def end(self, reason: str) -> None:
        """End the session at once."""


class SessionRegistry:
    """All sessions by their numbers."""

    def __init__(self, clock: Clock) -> None:
        self.channels: dict[int, SessionChannel] = {}
        self._clock = clock
        self._last = 0

    def next_number(self) -> int:
        """Return the number of a new session: from 1, never twice."""
        self._last += 1
        return self._last

    def end(self, number: int, reason: str) -> None:
        """End a session, if it has not ended yet."""
        channel = self.channels.get(number)
        if channel is not None:
            channel.end(reason)

    def publish(self, event: ET.Element, may_read: Callable[[ServedSession], bool] = lambda _session: True) -> None:
        """Send a notification to all sessions that have subscribed to it and may read it."""
        message = notification(event, self._clock.date())
        for channel in list(self.channels.values()):
            subscription = channel.session.subscription
            if subscription is not None and may_read(channel.session) and subscription.passes(event):
                channel.send(channel.session.message(message))
