"""A connection that data comes from, with messages between: from the predecessor, or from the source."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from blast_transport.base.errors import RemoteError
from blast_transport.base.moderation import Moderation
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.pump import Intake
from blast_transport.transports.pipeline.protocol.messages import Message

_STEP_SECONDS = 0.015
"""Delay of forwarding received data and of reporting it to the predecessor: longer steps make nodes wait for each
other."""
_GATHERED_BYTES, _GATHERING_SECONDS = 256 << 10, 0.004
"""Each node of a chain adds the latter at most to the time that data travels."""
_BROKEN = select.POLLHUP | select.POLLERR


class Feed:
    """Connection from which data arrives, at most one at a time; not thread-safe.

    `may_take` returns whether data is accepted now, and raises RemoteError if none was requested. `arrived`,
    `on_message` and `lost` are called for data in the intake, a message, and the end of the connection.
    """

    def __init__(
        self,
        intake: Intake,
        may_take: Callable[[], bool],
        arrived: Callable[[], None],
        on_message: Callable[[Message], None],
        lost: Callable[[str], None],
    ) -> None:
        self.link: Link | None = None
        self._intake = intake
        self._may_take = may_take
        self._arrived = arrived
        self._on_message = on_message
        self._lost = lost
        self._unsettled = False
        self._moderation = Moderation(_GATHERED_BYTES, _GATHERING_SECONDS)

    def watch(self, poll: select.poll) -> bool:
        """Register for `poll`; return true if something can be read that poll does not see."""
        link = self.link
        if link is None:
            return False
        reads = not link.payload or self._guarded_may_take()
        poll.register(link.socket, (select.POLLIN if reads else 0) | (select.POLLOUT if link.has_output else 0))
        return reads and link.pending

    @property
    def expects(self) -> bool:
        """Return whether data comes next."""
        return self.link is not None and self.link.payload > 0

    def pause(self, events: int, now: float) -> float:
        """Return the seconds for which data may collect before `work`."""
        return self._moderation.pause(now) if self.expects and events & select.POLLIN else 0.0

    def work(self, events: int) -> None:
        """Read and write what can be. Raises StoreError."""
        began, until = self._intake.position, time.monotonic() + _STEP_SECONDS
        try:
            while self.link is not None and self._step(self.link, events) and time.monotonic() < until:
                pass
            self._settle()
            self._moderation.read(self._intake.position - began, time.monotonic())
            # Heartbeats must leave even under a constant flow of data.
            if self.link is not None:
                self.link.flush()
        except RemoteError as error:
            self.lose(str(error))

    def lose(self, reason: str) -> None:
        """Close the connection after writing the received data. Raise StoreError."""
        if self.link is not None:
            self.link.close()
            self.link = None
            self._settle()
            self._lost(reason)

    def send(self, message: Message) -> None:
        """Send a message, if there is a connection. Raise StoreError, as `lose` does."""
        try:
            if self.link is not None:
                self.link.send(message)
        except RemoteError as error:
            self.lose(str(error))

    def take_link(self) -> Link | None:
        """Give the connection away."""
        link, self.link = self.link, None
        return link

    def _step(self, link: Link, events: int) -> bool:
        """Process one piece of data or one message; return False if there is none."""
        if not link.payload:
            message = link.receive()
            if message is not None:
                self._settle()
                self._on_message(message)
            return message is not None or link.payload > 0
        if not self._may_take():
            if events & _BROKEN:
                raise RemoteError("connection lost")
            return False
        if link.take(self._intake) == 0:
            return False
        self._unsettled = True
        return True

    def _settle(self) -> None:
        if self._unsettled:
            self._unsettled = False
            self._intake.settle()
            self._arrived()

    def _guarded_may_take(self) -> bool:
        try:
            return self._may_take()
        except RemoteError:
            return True  # `work` will find the same and act on it.
