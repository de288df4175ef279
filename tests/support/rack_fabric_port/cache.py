"""The multicast cache of a leaf, which its ports share (section 3, and Figure 4c for premature evictions)."""

from __future__ import annotations

from tests.support.rack_fabric_port.constants import Constants

Line = tuple[int, int]
"""A frame and the number of one of its packets."""


class Cache:
    """Lines with the slot of their last use, the least recently used first."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._lines: dict[Line, int] = {}
        self._slot = 0
        self._written = False

    def __contains__(self, line: Line) -> bool:
        return line in self._lines

    def begin_slot(self, time: int) -> None:
        self._slot, self._written = time, False

    @property
    def writable(self) -> bool:
        """Whether a packet that is sent now is written as well: one in a slot."""
        return not self._written and len(self._lines) < self._constants.cache

    def write(self, line: Line) -> None:
        self._written = True
        self._lines[line] = self._slot

    def use(self, line: Line) -> None:
        """A copy takes a packet from the cache."""
        del self._lines[line]
        self._lines[line] = self._slot

    def drop(self, line: Line) -> None:
        """All copies have left, or space is needed."""
        del self._lines[line]

    def victim(self) -> Line | None:
        """What is evicted next, in a cycle of this slot, although copies are still to come."""
        if self._constants.cache - len(self._lines) >= self._constants.reserve:
            return None
        return next((line for line, slot in self._lines.items() if slot != self._slot), None)
