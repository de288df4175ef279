"""The sender's table of digests as it grows, and how far the receivers know it."""

from __future__ import annotations

from collections.abc import Iterator

from blast_transport.blocks.digests import DIGEST_BYTES
from blast_transport.wire.codec import DIGESTS_PER_MESSAGE
from blast_transport.wire.messages import Digests


class SentDigests:
    """Digests of the first `count` blocks; those before `sent` were sent to all receivers that listen."""

    def __init__(self, session: int) -> None:
        self.sent = self.count = 0
        self._session = session
        self._table = bytearray()

    def add(self, digests: bytes) -> None:
        """Add the digests of the next blocks, one after the other."""
        self._table += digests
        self.count += len(digests) // DIGEST_BYTES

    def table(self) -> bytes:
        """Return all digests, one after the other."""
        return bytes(self._table)

    def messages(self, first: int) -> Iterator[Digests]:
        """Yield the messages with the digests from block `first` on."""
        for block in range(first, self.count, DIGESTS_PER_MESSAGE):
            stop = min(block + DIGESTS_PER_MESSAGE, self.count)
            yield Digests(self._session, block, bytes(self._table[block * DIGEST_BYTES : stop * DIGEST_BYTES]))
