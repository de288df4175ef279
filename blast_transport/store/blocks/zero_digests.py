"""Digests of blocks of zeros, computed without reading them."""

from __future__ import annotations

from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import BlockLayout


class ZeroDigests:
    """Digests of blocks of zeros, as `layout` cuts them; each length is digested once."""

    def __init__(self, layout: BlockLayout, suite: Suite) -> None:
        self._layout, self._suite = layout, suite
        self._known: dict[int, bytes] = {}

    def of(self, first: int, count: int) -> bytes:
        """Return the digests of `count` blocks from `first` on, one after the other."""
        last = first + count - 1
        return self._of_length(self._layout.length(first)) * (count - 1) + self._of_length(self._layout.length(last))

    def _of_length(self, length: int) -> bytes:
        if length not in self._known:
            self._known[length] = self._suite.block(bytes(length))
        return self._known[length]
