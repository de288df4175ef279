"""Naive unicast, to compare with: one TCP connection per receiver, all at the same time, the kernel's sendfile.

It is the same session as a multicast, only that every segment is owed to every receiver from the start.
"""

from __future__ import annotations

import time
from pathlib import Path

from blast_transport.report import TransferResult
from blast_transport.sender import Sender, opened
from blast_transport.sender_core import SenderCore
from blast_transport.store_old import new_hash, read_exactly

# Small enough that each of many receivers on a slow link shows progress within seconds.
_SEGMENT_BYTES = 1 << 16
_DIGEST_STEP_BYTES = 1 << 20


class _PacketCarrier:
    """Digests the file a piece at a time while the connections drain."""

    def __init__(self, descriptor: int) -> None:
        self.datagrams = 0
        self.digest = b""
        self._descriptor = descriptor
        self._hash = new_hash()
        self._offset = 0
        self._buffer = memoryview(bytearray(_DIGEST_STEP_BYTES))

    def obey(self, core: SenderCore) -> None:
        """Nobody orders it: there is no light to come and go."""

    def step(self, core: SenderCore) -> float:
        """Digest the next piece. Raises SourceChangedError."""
        piece = self._buffer[: min(_DIGEST_STEP_BYTES, core.hello.size - self._offset)]
        read_exactly(self._descriptor, piece, self._offset)
        self._hash.update(piece)
        self._offset += len(piece)
        if self._offset == core.hello.size:
            self.digest = self._hash.digest()
            core.end_of_data(self.digest, time.monotonic())
        return 0


def send_unicast(sender: Sender, path: Path) -> TransferResult:
    """Send a file to all receivers of `sender` over the packet network. Raises as `Sender.send` does."""
    with opened(path) as descriptor:
        return sender.send_packets(path, descriptor, _SEGMENT_BYTES, _PacketCarrier(descriptor))
