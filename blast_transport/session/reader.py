"""The sender's blocks: read from the source, digested in order, and made once more as they travel for repairs."""

from __future__ import annotations

from collections import OrderedDict

from blast_transport.blocks.digests import Suite
from blast_transport.blocks.sealing import Sealer
from blast_transport.session.sender_core import SenderCore
from blast_transport.store.source import Source

_IMAGES = 32


class UndigestedKept:
    """A source for somebody who reads ahead of us: nothing is released before it was digested."""

    def __init__(self, source: Source, core: SenderCore) -> None:
        self.descriptor, self.content = source.descriptor, source.content
        self._source, self._core = source, core

    @property
    def size(self) -> int | None:
        """As of the source."""
        return self._source.size

    @property
    def available(self) -> int:
        """As of the source."""
        return self._source.available

    def read(self, offset: int, view: memoryview) -> int:
        """As of the source."""
        return self._source.read(offset, view)

    def release(self, offset: int) -> None:
        """Later, where it was not digested yet."""
        self._source.release(min(offset, self._core.layout.offset(self._core.digests)))


class BlockReader:
    """Blocks of `source` as the session of `core` cuts them."""

    def __init__(self, source: Source, core: SenderCore, suite: Suite, sealer: Sealer | None) -> None:
        self.source = source
        self._core = core
        self._suite = suite
        self._sealer = sealer
        self._images: OrderedDict[int, memoryview] = OrderedDict()
        self._plain = memoryview(bytearray(core.layout.block_size))

    def ready(self, block: int) -> bool:
        """The whole block can be read without waiting."""
        size = self.source.size
        end = (block + 1) * self._core.layout.block_size
        return self.source.available >= (end if size is None else min(end, size))

    def last(self, block: int) -> bool:
        """There is no such block: the data ends before it."""
        size = self.source.size
        return size is not None and block * self._core.layout.block_size >= size

    def load(self, block: int, view: memoryview) -> int:
        """Read the block as it travels into `view`, and digest it if its turn has come; its length.

        Raises SourceChangedError, ForgottenError.
        """
        layout = self._core.layout
        # A carrier that was left may have gone further than what was digested.
        self.digest(block, block - self._core.digests)
        length = self.source.read(layout.offset(block), view[: layout.block_size])
        if block == self._core.digests:
            self._core.digest(self._suite.block(view[:length]))
        if self._sealer is None:
            return length
        sealed = self._sealer.seal(block, view[:length])
        view[: len(sealed)] = sealed
        return len(sealed)

    def digest(self, stop: int, most: int) -> bool:
        """Digest blocks, at most `most`, that come next before `stop`; True if there was anything to do."""
        core = self._core
        for count in range(most):
            block = core.digests
            if block >= stop or self.last(block) or not self.ready(block):
                return count > 0
            length = self.source.read(core.layout.offset(block), self._plain)
            core.digest(self._suite.block(self._plain[:length]))
        return True

    def image(self, block: int) -> memoryview:
        """The block as it travels, for repairs. Raises SourceChangedError, ForgottenError."""
        image = self._images.get(block)
        if image is None:
            buffer = memoryview(bytearray(self._core.layout.segment_size * self._core.layout.block_segments))
            image = self._images[block] = buffer[: self.load(block, buffer)]
            if len(self._images) > _IMAGES:
                self._images.popitem(last=False)
        return image

    def segments(self, first: int, count: int) -> memoryview:
        """So many segments of one block as they travel, for repairs. Raises SourceChangedError, ForgottenError."""
        layout = self._core.layout
        block, index = divmod(first, layout.block_segments)
        begin, end = index * layout.segment_size, (index + count) * layout.segment_size
        if self._sealer is not None or count == layout.block_segments or block >= self._core.digests:
            return self.image(block)[begin:end]
        # Most repairs are of one segment, which is read sooner than a block is.
        view = memoryview(bytearray(max(0, min(end, layout.length(block)) - begin)))
        return view[: self.source.read(layout.offset(block) + begin, view)]

    def close(self) -> None:
        """No block will be asked for any more."""
        self._images.clear()

    def whole(self) -> bytes:
        """The digest of the whole, over the digests of all blocks."""
        return self._suite.whole(self._core.table())
