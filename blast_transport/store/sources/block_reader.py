"""The sender's blocks: read from the source, digested in order, and made once more as they travel for repairs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from blast_transport.base.engines import PYTHON
from blast_transport.base.errors import LocalProtocolError
from blast_transport.blocks.block_map import BlockMap, Range
from blast_transport.blocks.digests import DIGEST_BYTES, Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.sealing import Sealer
from blast_transport.store.blocks.zero_digests import ZeroDigests
from blast_transport.store.sources.source import Source

_IMAGES = 32
"""Blocks kept in memory: receivers request the same repairs within a short time."""


class BlockReader:
    """Reader of the blocks of `source`; the first `digested` blocks have digests.

    Blocks in `holes` are zeros and are digested without reading: `check_unchanged` of the source detects a hole that
    was filled. Only the session's thread may call it, except for `ready`, `last` and reads of `source`.
    """

    engine = PYTHON

    def __init__(
        self, source: Source, layout: BlockLayout, suite: Suite, sealer: Sealer | None, holes: Iterable[Range] = ()
    ) -> None:
        self.source = source
        self.layout = layout
        self.digested = 0
        self._digests = bytearray()
        self.suite = suite
        self._sealer = sealer
        self._images: OrderedDict[int, memoryview] = OrderedDict()
        self._plain = memoryview(bytearray(layout.block_size))
        self._holes = BlockMap()
        for first, count in holes:
            self._holes.add_range(first, count)
        self._zeros = ZeroDigests(layout, suite)

    @property
    def sealed(self) -> bool:
        """Return whether blocks travel sealed."""
        return self._sealer is not None

    @property
    def readable(self) -> int:
        """Return the block before which blocks can be read without waiting, possibly behind the end."""
        size, available, block_size = self.source.size, self.source.available, self.layout.block_size
        return -(-available // block_size) if size is not None and available >= size else available // block_size

    def ready(self, block: int) -> bool:
        """Return whether the whole block can be read without waiting."""
        size = self.source.size
        end = (block + 1) * self.layout.block_size
        return self.source.available >= (end if size is None else min(end, size))

    def last(self, block: int) -> bool:
        """Return whether the data ends before this block."""
        size = self.source.size
        return size is not None and block * self.layout.block_size >= size

    def load(self, block: int, view: memoryview) -> int:
        """Read the block as it travels into `view`, and digest it if its turn has come; return its length.

        Raises SourceChangedError, ForgottenError.
        """
        # A transport that was left may have gone further than what was digested.
        self.digest(block - self.digested)
        length = self.source.read(self.layout.offset(block), view[: self.layout.block_size])
        if block == self.digested:
            self.note(block, self.suite.block(view[:length]))
        if self._sealer is None:
            return length
        sealed = self._sealer.seal(block, view[:length])
        view[: len(sealed)] = sealed
        return len(sealed)

    def digest(self, max_blocks: int) -> bool:
        """Digest up to `max_blocks` of the next readable blocks; return whether there was any.

        Raise SourceChangedError, ForgottenError.
        """
        for count in range(max_blocks):
            block = self.digested
            if self.last(block) or not self.ready(block):
                return count > 0
            if block in self._holes:
                self.note(block, self._zeros.of(block, 1))
                continue
            length = self.source.read(self.layout.offset(block), self._plain)
            self.note(block, self.suite.block(self._plain[:length]))
        return True

    def note(self, first: int, digests: bytes) -> None:
        """Add the digests of the blocks from `first` on; known ones change nothing.

        Raise LocalProtocolError if digests before them are missing.
        """
        if first > self.digested:
            raise LocalProtocolError(f"digests from block {first} on, before those from block {self.digested} on")
        new = digests[(self.digested - first) * DIGEST_BYTES :]
        self._digests += new
        self.digested += len(new) // DIGEST_BYTES

    def take_digests(self) -> bytes:
        """Return the digests since the last call, one after the other."""
        digests = bytes(self._digests)
        self._digests.clear()
        return digests

    @property
    def dry(self) -> bool:
        """Return whether no block can be digested now."""
        return self.last(self.digested) or not self.ready(self.digested)

    def whole(self, table: bytes) -> bytes:
        """Return the digest of the whole, over those of all blocks."""
        return self.suite.whole(table)

    def image(self, block: int) -> memoryview:
        """Return the block as it travels, for repairs. Raise SourceChangedError, ForgottenError."""
        image = self._images.get(block)
        if image is None:
            buffer = memoryview(bytearray(self.layout.segment_size * self.layout.block_segments))
            image = self._images[block] = buffer[: self.load(block, buffer)]
            if len(self._images) > _IMAGES:
                self._images.popitem(last=False)
        return image

    def segments(self, first: int, count: int) -> memoryview:
        """Return `count` segments of one block as they travel, for repairs.

        Raise SourceChangedError, ForgottenError.
        """
        layout = self.layout
        block, index = divmod(first, layout.block_segments)
        begin, end = index * layout.segment_size, (index + count) * layout.segment_size
        if self._sealer is not None or count == layout.block_segments or block >= self.digested:
            return self.image(block)[begin:end]
        # Most repairs have one segment, which is faster to read than a block.
        offset, size = layout.offset(block), self.source.size
        length = layout.block_size if size is None else min(layout.block_size, size - offset)
        view = memoryview(bytearray(max(0, min(end, length) - begin)))
        return view[: self.source.read(offset + begin, view)]

    def close(self) -> None:
        """Free the resources; no block is read after this."""
        self._images.clear()


class UndigestedSource:
    """Source that another reader reads ahead of `reader`: it releases nothing before it is digested."""

    def __init__(self, reader: BlockReader) -> None:
        self._reader, self._source = reader, reader.source
        self.descriptor, self.content = reader.source.descriptor, reader.source.content

    @property
    def size(self) -> int | None:
        """Return the size of the source."""
        return self._source.size

    @property
    def available(self) -> int:
        """Return the available bytes of the source."""
        return self._source.available

    def read(self, offset: int, view: memoryview) -> int:
        """Read from the source."""
        return self._source.read(offset, view)

    def release(self, offset: int) -> None:
        """Release the source before this offset, as far as it is digested."""
        self._source.release(min(offset, self._reader.layout.offset(self._reader.digested)))

    def holes(self) -> list[Range]:
        """Return the holes of the source."""
        return self._source.holes()

    def check_unchanged(self) -> None:
        """Check the source."""
        self._source.check_unchanged()
