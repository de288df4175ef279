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
    requests: deque[int] = field(default_factory=deque)
    """Packets of each frame that has been asked for and not been granted."""
    granted: int = 0
    """Packets that have been granted and not been used."""

    @property
    def congested(self) -> bool:
        return self.threshold is not None and self.backlog >= self.threshold

    def add(self, header: Header) -> list[int]:
        """Queue a copy; the requests that it takes, in packets: what earlier ones, for copies dropped since, cover not.

        Frames are requested whole.
        """
        self.waiting.append(header)
        self.backlog += header.packets
        return self._ask()

    def drop_head(self) -> Header:
        header = self.waiting.popleft()
        self.backlog -= header.packets
        return header

    def grant(self, packets: int) -> list[int]:
        """The first requests are granted; new ones that this takes."""
        self.granted += packets
        while packets > 0:
            packets -= self.requests.popleft()
        return self._give_back() + self._ask()

    def begin(self) -> Header:
        header = self.drop_head()
        self.granted -= header.packets
        self.sending = header
        return header

    def finish(self) -> list[int]:
        """The last packet of a copy has left."""
        self.sending = None
        return self._give_back()

    def _give_back(self) -> list[int]:
        """Credits of copies that have been dropped go back when nothing waits for them: the paper does not say."""
        if not self.waiting:
            self.granted = 0
        return self.give_back_part()

    def give_back_part(self) -> list[int]:
        """What is only a part of what the head needs goes back too, and the head is requested whole.

        The requests that this takes.
        """
        if not self.waiting or not 0 < self.granted < self.waiting[0].packets:
            return []
        head = self.waiting[0].packets
        self.granted = 0
        asked = []
        if all(request < head for request in self.requests):
            self.requests.append(head)
            asked.append(head)
        return asked + self._ask()

    def _ask(self) -> list[int]:
        """What waits and is neither granted nor requested, in frames like the last one; at most one message."""
        missing = self.backlog - sum(self.requests) - self.granted
        if missing <= 0:
            return []
        size = self.waiting[-1].packets
        frames = -(-missing // size)
        self.requests += [size] * frames
        return [size * frames]
