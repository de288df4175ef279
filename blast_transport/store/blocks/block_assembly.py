"""Interface of an assembly to transports and sessions, for any engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.store.blocks.block_store import BlockStore

Piece = tuple[int, int, Buffer]
"""(first segment, number of segments, their payload in one piece)."""


class BlockAssembly(Protocol):
    """Assembly of a store's blocks from segments; `assembly.py` is the reference implementation."""

    @property
    def store(self) -> BlockStore:
        """Return the store that it fills."""

    @property
    def decodes(self) -> bool:
        """Return whether it can compute lost segments from parity segments."""

    @property
    def duplicates(self) -> int:
        """Return the number of segments received more than once."""

    @property
    def refused(self) -> int:
        """Return the segments that were foreign, or were dropped in favor of earlier blocks."""

    def refuse(self, count: int) -> None:
        """Count `count` segments that do not belong to the session."""

    def add_all(self, pieces: Iterable[Piece]) -> int:
        """Add segments in the order of their arrival; return the number of new ones. Raise StoreError."""

    def repair(self, rows: Iterable[tuple[int, Buffer]]) -> int:
        """Add rows of requested segments; return the bytes of the rows with new segments. Raise StoreError."""

    def settle(self, size: int) -> None:
        """Complete the last block of a stream after all was sent. Raise StoreError, RemoteProtocolError."""

    def missing(self, first: int, stop: int) -> list[Range]:
        """Return the missing segments from `first` to before `stop`, as ranges in order."""

    def take_wrong(self) -> list[Range]:
        """Return the blocks received with a wrong digest since the last call, and drop their segments."""
