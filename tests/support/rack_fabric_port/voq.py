"""A virtual output queue: first in, first out, with credits in packets (sections 2.1, 2.2 and 4.1)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Header:
    """A copy of a frame that waits or is on its way; a packet of it is the next to be sent."""

    frame: int
    copy: int
    packets: int
    next_packet: int = 0


@dataclass(slots=True)
class Voq:
    """Copies for one egress port and virtual lane."""

    lane: int
    threshold: int | None
    """No copy is dropped without one."""
    waiting: deque[Header] = field(default_factory=deque)
    sending: Header | None = None
    backlog: int = 0
    requested: int = 0
    """Packets that have been asked for and not been granted."""
    granted: int = 0
    """Packets that have been granted and not been used."""

    @property
    def congested(self) -> bool:
        return self.threshold is not None and self.backlog >= self.threshold

    def add(self, header: Header) -> int:
        """Queue a copy; packets to be requested: what earlier requests, for copies dropped since, do not cover."""
        self.waiting.append(header)
        self.backlog += header.packets
        request = max(0, self.backlog - self.requested - self.granted)
        self.requested += request
        return request

    def drop_head(self) -> Header:
        header = self.waiting.popleft()
        self.backlog -= header.packets
        return header

    def grant(self, packets: int) -> None:
        self.requested -= packets
        self.granted += packets
        self._give_back()

    def begin(self) -> Header:
        header = self.drop_head()
        self.granted -= header.packets
        self.sending = header
        return header

    def finish(self) -> None:
        """The last packet of a copy has left."""
        self.sending = None
        self._give_back()

    def _give_back(self) -> None:
        """Credits of copies that have been dropped go back when nothing waits for them: the paper does not say."""
        if not self.waiting:
            self.granted = 0
