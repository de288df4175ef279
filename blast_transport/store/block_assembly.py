"""What transports and sessions know of an assembly, whichever engine it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.store.block_store import BlockStore

Piece = tuple[int, int, Buffer]
"""(first segment, number of segments, their payload in one piece)."""


class BlockAssembly(Protocol):
    """Fills a store with blocks out of segments: `assembly.py` says what each of these means, and is the reference."""

    @property
    def store(self) -> BlockStore:
        """What it fills."""

    @property
    def duplicates(self) -> int:
        """Segments that were held."""

    @property
    def refused(self) -> int:
        """Segments that cannot be part of the session, or had to make room for what comes earlier in the file."""

    def refuse(self, count: int) -> None:
        """So many segments were none of the session's."""

    def add_all(self, pieces: Iterable[Piece]) -> int:
        """Take segments as they came, in one piece of work; how many were new. Raises StoreError."""

    def repair(self, rows: Iterable[tuple[int, Buffer]]) -> int:
        """Take rows of segments that were asked for; bytes of those that brought anything new. Raises StoreError."""

    def settle(self, size: int) -> None:
        """All was sent: the last block of a stream may be whole. Raises StoreError, RemoteProtocolError."""

    def missing(self, first: int, stop: int) -> list[Range]:
        """The segments from `first` to before `stop` that are not here, as ranges in order."""

    def take_wrong(self) -> list[Range]:
        """Blocks that came with a wrong digest since the last call; what is here of them is forgotten."""
