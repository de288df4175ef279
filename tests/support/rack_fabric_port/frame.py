"""A frame in the payload memory of a port (section 2.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.support.rack_fabric_port.tables import Entry


@dataclass(slots=True)
class Frame:
    """Its copies are told apart by their numbers in the multicast table."""

    number: int
    flow: int
    entry: Entry
    packets: int
    to_come: set[int]
    """Copies whose headers have not arrived."""
    live: set[int] = field(default_factory=set)
    """Copies that have a header: accepted, and not dropped."""
    begun: dict[int, int] = field(default_factory=dict)
    """Copies that a queue has begun to send, and that queue."""
    flying: set[int] = field(default_factory=set)
    """Copies that have left as a whole and are not acknowledged."""
    acknowledged: int = 0
    left: Counter[int] = field(default_factory=Counter)
    """How many copies of each packet have left."""

    @property
    def all_begun(self) -> bool:
        return bool(self.live) and self.live <= self.begun.keys()

    @property
    def done(self) -> bool:
        """Whether the port needs the payload no more."""
        return not self.to_come and self.acknowledged == len(self.live)

    def all_left(self, packet: int) -> bool:
        return self.left[packet] == len(self.live)
