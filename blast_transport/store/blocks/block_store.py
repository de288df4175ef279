"""Interface of a store to transports and sessions, for any engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.targets.target import Buffer, Target


class HeldBlocks(Protocol):
    """Map of the held blocks, as `BlockMap` provides it."""

    @property
    def held(self) -> int:
        """Return the number of held blocks."""

    def __contains__(self, block: int) -> bool:
        """Return whether this block is held."""

    def first_missing(self, start: int = 0) -> int:
        """Return the first block from `start` on that is not held."""

    def ranges(self) -> Iterator[Range]:
        """Yield the held blocks as ranges in order."""

    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """Yield the missing blocks from `start` to before `stop`, as ranges in order."""


class BlockStore(Protocol):
    """Data of one session at one receiver; `store.py` is the reference implementation."""

    engine: str
    layout: BlockLayout
    suite: Suite
    target: Target
    durable: bool | None

    @property
    def held(self) -> HeldBlocks:
        """Return the map of held blocks."""

    @property
    def position(self) -> int:
        """Return the first block that is not held."""

    @property
    def corrupt(self) -> int:
        """Return the number of blocks received with a wrong digest."""

    @property
    def descriptor(self) -> int | None:
        """Return the descriptor of the regular file that is being written, if any."""

    @property
    def reach(self) -> int:
        """Return the block from which on blocks are not accepted yet."""

    @property
    def complete(self) -> bool:
        """Return whether every block is held and verified."""

    def put(self, block: int, data: Buffer) -> bool:
        """Take a whole block. Raises StoreError."""

    def put_all(self, first: int, row: Sequence[Buffer]) -> int:
        """Take whole blocks from `first` on; return how many were taken. Raises StoreError."""

    def put_row(self, first: int, data: memoryview) -> None:
        """Take whole blocks from `first` on, as a chain brings them. Raises StoreError."""

    def claim(self, first: int, stop: int) -> list[Range]:
        """Return the blocks that the caller may now write itself. Raise StoreError."""

    def written(self, first: int, digests: bytes) -> None:
        """Record that claimed blocks are written. Raise StoreError."""

    def release(self, first: int, stop: int) -> None:
        """Return claimed blocks that will not be written."""

    def expect(self, first: int, digests: bytes) -> None:
        """Add the sender's digests of the blocks from `first` on. Raise StoreError, RemoteProtocolError."""

    def has(self, block: int) -> bool:
        """Return whether the block is held, or waits to be written in order."""

    def waiting(self) -> list[int]:
        """Return the blocks that wait to be written in order."""

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`, as far as it is held. Raises ForgottenError, StoreError."""

    def block(self, number: int) -> bytearray | None:
        """Return a held block, if it is kept. Raise StoreError."""

    def finish_size(self, size: int) -> None:
        """Set the size of a stream to `size` bytes. Raise RemoteProtocolError."""

    def refuse(self, block: int) -> None:
        """Mark this block as received with wrong data."""

    def take_wrong(self) -> list[Range]:
        """Return the blocks received with a wrong digest since the last call."""

    def commit(self, digest: bytes, *, fsync: bool = False) -> None:
        """Complete the target. Raise DigestMismatchError, StoreError."""

    def discard(self, *, resumable: bool = False) -> None:
        """Remove everything except the remains that a later session can resume."""
