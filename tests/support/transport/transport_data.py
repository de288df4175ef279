"""Data in blocks, with its digests, as a sender has it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from blast_transport.base.errors import ForgottenError
from blast_transport.blocks.digests import BEST, Suite, suite_named
from blast_transport.blocks.layout import BlockLayout

SUITE = suite_named(BEST)


@dataclass(frozen=True)
class Data:
    """The bytes `content` in blocks of `layout`."""

    content: bytes
    layout: BlockLayout
    suite: Suite = SUITE

    @property
    def blocks(self) -> int:
        return self.layout.blocks

    def block(self, number: int) -> bytes:
        begin = self.layout.offset(number)
        return self.content[begin : begin + self.layout.length(number)]

    def digests(self, first: int = 0, stop: int | None = None) -> bytes:
        stop = self.blocks if stop is None else stop
        return b"".join(self.suite.block(self.block(number)) for number in range(first, stop))

    @property
    def whole(self) -> bytes:
        return self.suite.whole(self.digests())


def data_of(size: int, segment_size: int = 10, block_segments: int = 4, seed: int = 0) -> Data:
    """Return random bytes with a layout of small blocks."""
    return Data(random.Random(seed).randbytes(size), BlockLayout(size, segment_size, block_segments))


def mutated(chance: random.Random, data: bytes, odd: Sequence[int], inserts: Sequence[bytes] = ()) -> bytes:
    """Change a byte, often into an `odd` one, cut some out, double or insert some, or cut the end; up to four times."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(5):
            case 0 if place < len(changed):
                changed[place] = chance.choice([*odd, chance.randrange(256)])
            case 1:
                del changed[place : place + chance.randrange(9)]
            case 2:
                del changed[place:]
            case 3:
                changed[place:place] = changed[: chance.randrange(20)]
            case _:
                changed[place:place] = chance.choice([*inserts, chance.randbytes(chance.randrange(8))])
    return bytes(changed)


class InOrder:
    """A target that is fed in order, and keeps everything."""

    in_order = True
    descriptor: int | None = None
    place = "in order"

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, offset: int, *pieces: bytes | bytearray | memoryview) -> None:
        assert offset == len(self.data)
        self.data += b"".join(pieces)

    def read(self, offset: int, view: memoryview) -> int:
        if offset < len(self.data) - 100:
            raise ForgottenError(len(self.data) - 100)
        piece = self.data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def commit(self, size: int, *, fsync: bool) -> None:
        assert size == len(self.data)

    def discard(self, *, resumable: bool) -> None:
        """Discard nothing: no data is kept elsewhere."""
