"""How a file or stream is cut: blocks of segments, a segment for each datagram.

The block is the unit of the map, of the digest, of writing and of sealing; a segment is what one datagram carries. A
block is as many segments as one UDP super-packet takes, so that it travels, is checked and is written in one piece.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from blast_transport.base.errors import RemoteProtocolError

BLOCK_SEGMENTS = 44
"""Segments in a block at the Ethernet MTU: as many as the largest UDP payload takes (65,507 bytes)."""

LARGEST_SEGMENT = 65_491
MAX_SEGMENTS = 64
"""As many datagrams as Linux has always taken at once (UDP_MAX_SEGMENTS)."""
MAX_BLOCKS = 1 << 27


@dataclass(frozen=True, slots=True)
class Layout:
    """`size` in bytes, None while a stream has not ended; `overhead` is what sealing adds to a block, in bytes.

    `block_size` is the bytes of the file in a full block, `blocks` their number; of a stream that has not ended, the
    most that there can be. Raises RemoteProtocolError for sizes that no sender may announce.
    """

    size: int | None
    segment_size: int
    block_segments: int = BLOCK_SEGMENTS
    overhead: int = 0
    # Asked for several times with every block.
    block_size: int = field(init=False, compare=False)
    blocks: int = field(init=False, compare=False)
    _full: int = field(init=False, compare=False, repr=False)
    _every: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        possible = 0 < self.segment_size <= LARGEST_SEGMENT and 0 < self.block_segments <= MAX_SEGMENTS
        block_size = self.segment_size * self.block_segments - self.overhead
        if not (possible and block_size > 0):
            raise RemoteProtocolError(
                f"blocks of {self.block_segments} segments of {self.segment_size} bytes are out of range"
            )
        if self.size is not None and not 0 <= self.size <= MAX_BLOCKS * block_size:
            raise RemoteProtocolError(f"{self.size} bytes are out of range")
        place = partial(object.__setattr__, self)
        place("block_size", block_size)
        place("blocks", MAX_BLOCKS if self.size is None else -(-self.size // block_size))
        place("_full", MAX_BLOCKS if self.size is None else self.size // block_size)
        place("_every", (1 << self.block_segments) - 1)

    @property
    def known(self) -> bool:
        """The size is known: always for a file, at the end for a stream."""
        return self.size is not None

    def offset(self, block: int) -> int:
        """Where the block begins in the file."""
        return block * self.block_size

    def length(self, block: int) -> int:
        """Bytes of the file in this block; the last one may be short."""
        return self.block_size if block < self._full or self.size is None else self.size - block * self.block_size

    def wire_length(self, block: int) -> int:
        """Bytes of this block in datagrams."""
        return self.length(block) + self.overhead

    def segments(self, block: int) -> int:
        """Number of segments of this block."""
        return -(-self.wire_length(block) // self.segment_size)

    def all_segments(self, block: int) -> int:
        """Mask with a bit for each segment of this block."""
        return self._every if block < self._full else (1 << self.segments(block)) - 1

    def closed(self, size: int) -> Layout:
        """The same for a stream that turned out to have `size` bytes. Raises RemoteProtocolError."""
        return replace(self, size=size)
