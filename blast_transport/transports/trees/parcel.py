"""Blocks in memory: one buffer for the store and for all to whom it goes, and a bound for all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.store.targets.target import Buffer


@dataclass(slots=True)
class BufferSpace:
    """For `capacity` bytes of blocks, and a few blocks in any case; `taken` are in use."""

    capacity: int
    taken: int = 0

    @property
    def left(self) -> bool:
        """Return whether there is room for another block."""
        return self.taken < self.capacity


class Parcel:
    """Data of a block, with the number of its remaining users."""

    __slots__ = ("_room", "_users", "data", "number")

    def __init__(self, number: int, data: Buffer, users: int, room: BufferSpace) -> None:
        self.number, self.data = number, data
        self._users, self._room = users, room
        room.taken += len(data)

    def used(self) -> None:
        """Count one user less."""
        self._users -= 1
        if self._users == 0:
            self._room.taken -= len(self.data)
