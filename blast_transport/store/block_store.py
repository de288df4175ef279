"""What transports and sessions know of a store, whichever engine it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import Layout
from blast_transport.store.target import Buffer, Target


class HeldBlocks(Protocol):
    """Which blocks are held, as `BlockMap` tells it."""

    @property
    def held(self) -> int:
        """How many."""

    def __contains__(self, block: int) -> bool:
        """This one is."""

    def first_missing(self, start: int = 0) -> int:
        """The lowest block from `start` on that is not held."""

    def ranges(self) -> Iterator[Range]:
        """What is held, as ranges in order."""

    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """What is not held from `start` to before `stop`, as ranges in order."""


class BlockStore(Protocol):
    """One session's data at one receiver: `store.py` says what each of these means, and is the reference."""

    engine: str
    layout: Layout
    suite: Suite
    target: Target
    durable: bool | None

    @property
    def held(self) -> HeldBlocks:
        """Which blocks are held."""

    @property
    def position(self) -> int:
        """The first block that is not held."""

    @property
    def corrupt(self) -> int:
        """Blocks that came with a wrong digest."""

    @property
    def descriptor(self) -> int | None:
        """The regular file that is being written, if there is one."""

    @property
    def reach(self) -> int:
        """Blocks from this one on are not taken yet."""

    @property
    def complete(self) -> bool:
        """Every block is held and is what was sent."""

    def put(self, block: int, data: Buffer) -> bool:
        """Take a whole block. Raises StoreError."""

    def put_all(self, first: int, row: Sequence[Buffer]) -> int:
        """Take whole blocks from `first` on; how many were taken. Raises StoreError."""

    def put_row(self, first: int, data: memoryview) -> None:
        """Take whole blocks from `first` on, as a chain brings them. Raises StoreError."""

    def claim(self, first: int, stop: int) -> list[Range]:
        """The blocks that somebody may now write by himself. Raises StoreError."""

    def written(self, first: int, digests: bytes) -> None:
        """Blocks that were claimed lie where they belong. Raises StoreError."""

    def release(self, first: int, stop: int) -> None:
        """These will not be written by whoever has claimed them."""

    def expect(self, first: int, digests: bytes) -> None:
        """The sender's digests of the blocks from `first` on. Raises StoreError, RemoteProtocolError."""

    def has(self, block: int) -> bool:
        """The block is held, or waits for its turn."""

    def waiting(self) -> list[int]:
        """Blocks that wait for their turn."""

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`, as far as it is held. Raises ForgottenError, StoreError."""

    def block(self, number: int) -> bytearray | None:
        """A block that is held, if it is kept. Raises StoreError."""

    def finish_size(self, size: int) -> None:
        """A stream turned out to have `size` bytes. Raises RemoteProtocolError."""

    def refuse(self, block: int) -> None:
        """What came as this block is not what was sent."""

    def take_wrong(self) -> list[Range]:
        """Blocks that came with a wrong digest since the last call."""

    def commit(self, digest: bytes, *, fsync: bool = False) -> None:
        """Make the whole good. Raises DigestMismatchError, StoreError."""

    def discard(self, *, resumable: bool = False) -> None:
        """Leave nothing behind, but what a later session may go on from."""
