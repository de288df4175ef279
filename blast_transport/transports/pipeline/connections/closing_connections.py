"""Connections that are over, but for their last words."""

from __future__ import annotations

import select
import time

from blast_transport.base.errors import RemoteError
from blast_transport.transports.pipeline.connections.link import Link

_IN, _OUT = select.POLLIN, select.POLLOUT


class ClosingConnections:
    """Connections that close after the other side has received the last messages.

    An immediate close could discard them.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._links: list[tuple[Link, float]] = []

    def __bool__(self) -> bool:
        return bool(self._links)

    def add(self, link: Link) -> None:
        """Close this one soon; at once if it is in the middle of data."""
        if link.promised:
            link.close()
        else:
            self._links.append((link, time.monotonic() + self._seconds))

    def deadline(self) -> float | None:
        """Return the latest time at which the next one closes."""
        return min((limit for _, limit in self._links), default=None)

    def watch(self, poll: select.poll) -> None:
        """Register for `poll`."""
        for link, _ in self._links:
            poll.register(link.socket, _IN | (_OUT if link.has_output else 0))

    def serve(self, now: float) -> None:
        """Send what is left, read what comes, close what is done."""
        self._links = [(link, limit) for link, limit in self._links if self._goes_on(link, limit, now)]

    def close(self) -> None:
        """Close all now."""
        for link, _ in self._links:
            link.close()
        self._links.clear()

    @staticmethod
    def _goes_on(link: Link, limit: float, now: float) -> bool:
        try:
            if now < limit and link.part():
                return True
        except RemoteError:
            pass
        link.close()
        return False
