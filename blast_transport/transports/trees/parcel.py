"""Blocks in memory: one buffer for the store and for all to whom it goes, and a bound for all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.store.target import Buffer


@dataclass(slots=True)
class Room:
    """For `most` bytes of blocks, and a few blocks in any case; `taken` are in use."""

    most: int
    taken: int = 0

    @property
    def left(self) -> bool:
        """One more block may come."""
        return self.taken < self.most


class Parcel:
    """A block's bytes, which so many still need."""

    __slots__ = ("_room", "_users", "data", "number")

    def __init__(self, number: int, data: Buffer, users: int, room: Room) -> None:
        self.number, self.data = number, data
        self._users, self._room = users, room
        room.taken += len(data)

    def used(self) -> None:
        """One of them needs it no more."""
        self._users -= 1
        if self._users == 0:
            self._room.taken -= len(self.data)
