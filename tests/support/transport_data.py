"""Data cut into blocks, with its digests, as a sender has it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from blast_transport.blocks.digests import BEST, Suite, suite_named
from blast_transport.blocks.layout import Layout

SUITE = suite_named(BEST)


@dataclass(frozen=True)
class Data:
    """`content` in blocks of `layout`."""

    content: bytes
    layout: Layout
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
    """Random bytes, small blocks."""
    return Data(random.Random(seed).randbytes(size), Layout(size, segment_size, block_segments))
