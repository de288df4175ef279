"""Layout of a file or stream: blocks of segments, one segment per datagram.

The block is the unit of the map, of digests, of writing and of sealing; a segment is the payload of one datagram. A
block has as many segments as one UDP super-packet, so that it is sent, verified and written in one piece.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from blast_transport.base.errors import RemoteProtocolError

BLOCK_SEGMENTS = 44
"""Segments in a block at the Ethernet MTU: as many as the largest UDP payload takes (65,507 bytes)."""

LARGEST_SEGMENT = 65_491
MAX_SEGMENTS = 64
"""Maximum datagrams of a super-packet in every Linux version (UDP_MAX_SEGMENTS)."""
MAX_BLOCKS = 1 << 27
"""Memory: a receiver has a mark and a digest for each block."""


@dataclass(frozen=True, slots=True)
class BlockLayout:
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
        """Return whether the size is known: always for a file, at the end for a stream."""
        return self.size is not None

    def offset(self, block: int) -> int:
        """Return the offset of the block in the file."""
        return block * self.block_size

    def length(self, block: int) -> int:
        """Return the bytes of the file in this block; the last one may be short."""
        return self.block_size if block < self._full or self.size is None else self.size - block * self.block_size

    def wire_length(self, block: int) -> int:
        """Return the bytes of this block in datagrams."""
        return self.length(block) + self.overhead

    def segments(self, block: int) -> int:
        """Return the number of segments of this block."""
        return -(-self.wire_length(block) // self.segment_size)

    def all_segments(self, block: int) -> int:
        """Return a mask with a bit for each segment of this block."""
        return self._every if block < self._full else (1 << self.segments(block)) - 1

    def closed(self, size: int) -> BlockLayout:
        """Return the layout of an ended stream of `size` bytes. Raise RemoteProtocolError."""
        return replace(self, size=size)
