"""Assembly of the compiled engine, over its store. `assembly.py` is the reference implementation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blast_transport.base.moderation import ReadWindow
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.store.blocks.assembly import max_open
from blast_transport.store.blocks.block_assembly import Piece
from blast_transport.store.blocks.compiled_store import CompiledStore, Run, ranges


class OpticalRead(NamedTuple):
    """Result of one read: `runs` of segments, of which `new` were new, and `amount` bytes.

    `emptied`: no more data was available. `read_at`: time of the last read. `broken`: error number of the socket, if
    any.
    """

    runs: list[Run]
    new: int
    amount: int
    emptied: bool
    read_at: float
    broken: int | None


class OpticalReader:
    """Reader of the datagrams of one optical phase into a compiled assembly."""

    def __init__(
        self, assembly: CompiledAssembly, source: tuple[str, int], session: int, *, joined: bool, coding: int = 0
    ) -> None:
        """Accept datagrams from this IPv4 address and port; `joined`: the kernel may return several as one message.

        `coding`: blocks of a coding group of the sender; 0: parity segments are rejected.
        """
        store = assembly.store
        segments, size = store.layout.block_segments, store.layout.segment_size
        self._assembly, self._do = assembly.native, store.do
        groups = (store.layout.size, coding) if coding and assembly.decodes else None
        self._native = store.module.Light(source, session, segments=segments, size=size, joined=joined, coding=groups)

    def read(self, descriptor: int, stop: int, stay: ReadWindow) -> OpticalRead:
        """Read from this socket for the time of `stay`, and no segment from `stop` on. Raise StoreError."""
        limits, gathering = (stay.until, max(0, stay.segments)), (stay.gathers, stay.max_wait)
        read = self._do(self._native.read, descriptor, self._assembly, stop, limits, gathering, stay.woken)
        return OpticalRead(*read)


class CompiledAssembly:
    """A `BlockAssembly` of blocks that are not sealed, into a compiled store."""

    def __init__(self, store: CompiledStore) -> None:
        self.store = store
        segments, size = store.layout.block_segments, store.layout.segment_size
        self.native = store.module.Assembly(store.native, segments=segments, size=size, max_open=max_open(store.layout))

    @property
    def decodes(self) -> bool:
        """Return whether it can use parity segments: of a file, whose segments have an even number of bytes."""
        return self.store.layout.known and self.store.layout.segment_size % 2 == 0

    @property
    def duplicates(self) -> int:
        """Return the number of segments received more than once."""
        return int(self.native.duplicates)

    @property
    def refused(self) -> int:
        """Return the number of segments that did not belong to the session."""
        return int(self.native.refused)

    def refuse(self, count: int) -> None:
        """Count `count` segments that do not belong to the session."""
        self.native.refuse(count)

    def add_all(self, pieces: Iterable[Piece]) -> int:
        """Add segments in the order of their arrival; return the number of new ones."""
        return int(self.store.do(self.native.add_all, list(pieces)))

    def repair(self, rows: Iterable[tuple[int, Buffer]]) -> int:
        """Add rows of requested segments; return the bytes of the rows with new segments."""
        return int(self.store.do(self.native.repair, list(rows)))

    def settle(self, size: int) -> None:
        """Complete the last block of a stream after all was sent."""
        if not self.store.layout.known:
            self.store.finish_size(size)
        self.store.do(self.native.settle)

    def missing(self, first: int, stop: int) -> list[Range]:
        """Return the missing segments from `first` to before `stop`, as ranges in order."""
        return ranges(self.store.do(self.native.missing, first, stop))

    def take_wrong(self) -> list[Range]:
        """Return the blocks received with a wrong digest since the last call, each once, in order."""
        return ranges(self.store.do(self.native.take_wrong))
