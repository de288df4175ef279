"""The assembly of the compiled engine, over its store. What is said here is what `assembly.py`, the reference, says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blast_transport.base.moderation import Stay
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.store.assembly import max_open
from blast_transport.store.block_assembly import Piece
from blast_transport.store.compiled_store import CompiledStore, Run, ranges


class LightTaken(NamedTuple):
    """What one call took: `runs` of segments have passed, so many were `new`, and `amount` bytes came.

    `emptied`: that was all that had come. `read_at`: when it was read last. `broken`: the number of what is wrong with
    the socket.
    """

    runs: list[Run]
    new: int
    amount: int
    emptied: bool
    read_at: float
    broken: int | None


class TakenLight:
    """What one light brings into a compiled assembly."""

    def __init__(self, assembly: CompiledAssembly, source: tuple[str, int], session: int, *, joined: bool) -> None:
        """From this address of IPv4 and port; `joined`: the kernel hands over several datagrams as one message."""
        store = assembly.store
        segments, size = store.layout.block_segments, store.layout.segment_size
        self._assembly, self._do = assembly.native, store.do
        self._native = store.module.Light(source, session, segments=segments, size=size, joined=joined)

    def read(self, descriptor: int, stop: int, stay: Stay) -> LightTaken:
        """Take what this socket has, and gets while it may `stay`, and no segment from `stop` on. Raises StoreError."""
        turn, gathering = (stay.until, max(0, stay.segments)), (stay.gathers, stay.most)
        read = self._do(self._native.read, descriptor, self._assembly, stop, turn, gathering, stay.woken)
        return LightTaken(*read)


class CompiledAssembly:
    """A `BlockAssembly` of blocks that are not sealed, into a compiled store."""

    def __init__(self, store: CompiledStore) -> None:
        self.store = store
        segments, size = store.layout.block_segments, store.layout.segment_size
        self.native = store.module.Assembly(store.native, segments=segments, size=size, max_open=max_open(store.layout))

    @property
    def duplicates(self) -> int:
        """As of the reference."""
        return int(self.native.duplicates)

    @property
    def refused(self) -> int:
        """As of the reference."""
        return int(self.native.refused)

    def refuse(self, count: int) -> None:
        """As of the reference."""
        self.native.refuse(count)

    def add_all(self, pieces: Iterable[Piece]) -> int:
        """As of the reference."""
        return int(self.store.do(self.native.add_all, list(pieces)))

    def repair(self, rows: Iterable[tuple[int, Buffer]]) -> int:
        """As of the reference."""
        return int(self.store.do(self.native.repair, list(rows)))

    def settle(self, size: int) -> None:
        """As of the reference."""
        if not self.store.layout.known:
            self.store.finish_size(size)
        self.store.do(self.native.settle)

    def missing(self, first: int, stop: int) -> list[Range]:
        """As of the reference."""
        return ranges(self.store.do(self.native.missing, first, stop))

    def take_wrong(self) -> list[Range]:
        """As of the reference; each block once, in order."""
        return ranges(self.store.do(self.native.take_wrong))
