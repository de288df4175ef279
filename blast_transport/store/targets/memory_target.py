"""Target in memory, for a program that uses the data directly."""

from __future__ import annotations

from blast_transport.base.errors import StoreError
from blast_transport.store.targets.target import Buffer


class MemoryTarget:
    """`data` is what was received, at most `max_bytes`; complete only after `commit`."""

    in_order = False
    descriptor: int | None = None

    def __init__(self, name: str, max_bytes: int) -> None:
        self.place = name
        self._max_bytes = max_bytes
        self.data = bytearray()
        self.complete = False

    def write(self, offset: int, *pieces: Buffer) -> None:
        """Take bytes that belong at `offset`. Raises StoreError for more than is kept."""
        data = b"".join(pieces)
        if offset + len(data) > self._max_bytes:
            raise StoreError(f"more than {self._max_bytes} bytes, which is all that is kept in memory")
        if offset > len(self.data):
            self.data += bytes(offset - len(self.data))
        self.data[offset : offset + len(data)] = data

    def read(self, offset: int, view: memoryview) -> int:
        """Read written data at `offset`."""
        piece = self.data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def commit(self, size: int, *, fsync: bool) -> bool:
        """Complete the data, which is not durable."""
        del self.data[size:]
        self.complete = True
        return False

    def discard(self, *, resumable: bool) -> None:
        """Forget it."""
        if not self.complete:
            self.data.clear()
