"""Block as it is sent: its datagrams side by side in memory that never moves, so that sending copies nothing.

Headers lie in one row and payloads in another; the kernel gets the alternating list of both. The whole block is read,
digested and sealed in one piece.
"""

from __future__ import annotations

from array import array

from blast_transport.blocks.layout import BlockLayout
from blast_transport.wire.datagram import HEADER, wire_bytes


class Burst:
    """The datagrams of one block of a session at a time."""

    def __init__(self, session: int, layout: BlockLayout) -> None:
        self.layout = layout
        self.block = -1
        count, size = layout.block_segments, layout.segment_size
        headers = memoryview(bytearray(count * HEADER.size))
        for index in range(count):
            HEADER.pack_into(headers, index * HEADER.size, session, 0, 0)
        # Little-endian on the wire; a big-endian machine would have to swap.
        self._numbers = headers.cast("Q")[1::2]
        self.payload = memoryview(bytearray(count * size))
        self._headers = [headers[index * HEADER.size : (index + 1) * HEADER.size] for index in range(count)]
        self._payloads = [self.payload[index * size : (index + 1) * size] for index in range(count)]
        self._full = [part for pair in zip(self._headers, self._payloads, strict=True) for part in pair]
        self._parts = self._full
        self.segments = 0

    def load(self, block: int, wire_length: int) -> None:
        """Prepare the headers of the block whose `wire_length` bytes `payload` holds."""
        count, size = self.layout.block_segments, self.layout.segment_size
        first = block * count
        self._numbers[:] = array("Q", range(first, first + count))
        self.block = block
        self.segments = -(-wire_length // size)
        self._parts = self._full
        if wire_length < len(self.payload):
            self._parts = self._full[: 2 * self.segments]
            last = self.segments - 1
            self._parts[-1] = self.payload[last * size : wire_length]

    def parts(self, first: int, count: int) -> list[memoryview]:
        """Return header and payload alternating, of `count` segments from the `first` of the block on."""
        return self._parts[2 * first : 2 * (first + count)]

    def wire_bytes(self, first: int, count: int) -> int:
        """Return the bytes on the wire of these segments."""
        last = wire_bytes(len(self._parts[2 * (first + count) - 1]))
        return (count - 1) * wire_bytes(self.layout.segment_size) + last
