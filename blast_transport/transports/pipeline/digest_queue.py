"""Digests that the source of a chain computes as it sends, on their way to the session.

The source has its own thread, and only the session's may call the reader, which takes digests in order. Blocks that
the chain leaves out have none: the reader digests them itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from blast_transport.blocks.digests import DIGEST_BYTES
from blast_transport.store.sources.block_reader import BlockReader

_BLOCKS_PER_WAKE = 32
"""The session's thread would otherwise compete with the source's for the interpreter."""


class DigestQueue:
    """Digests of a file of `blocks` blocks. `wake` is called when there are many of them, and after the last."""

    def __init__(self, blocks: int, wake: Callable[[], None]) -> None:
        self._blocks, self._wake = blocks, wake
        # Each operation on it is atomic.
        self._pending: deque[tuple[int, bytes]] = deque()
        self._wake_at = min(_BLOCKS_PER_WAKE, blocks)

    def add(self, first: int, digests: bytes) -> None:
        """Add digests of the blocks from `first` on, behind all others; for the source's thread."""
        self._pending.append((first, digests))
        stop = first + len(digests) // DIGEST_BYTES
        if stop >= self._wake_at:
            self._wake_at = min(stop + _BLOCKS_PER_WAKE, self._blocks)
            self._wake()

    def pass_to(self, reader: BlockReader, sent: int) -> int:
        """Pass digests to the reader, as far as they continue its own; for the session's thread.

        Parameters
        ----------
        sent : int
            The block before which all blocks have left the source, or were left out, before this call.

        Returns
        -------
        int
            The number of next blocks that the source did not digest.
        """
        while self._pending and self._pending[0][0] <= reader.digested:
            reader.note(*self._pending.popleft())
        stop = self._pending[0][0] if self._pending else sent
        return max(0, stop - reader.digested)
