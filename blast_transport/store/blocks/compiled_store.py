"""Store of the compiled engine, for targets that are files: one call verifies digests, records and writes blocks.

Such a call releases the interpreter's lock. `store.py` is the reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from blast_transport.base.engines import COMPILED, engine_error
from blast_transport.base.errors import DigestMismatchError, RemoteProtocolError, StoreError, sentence
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.store import AHEAD_BYTES
from blast_transport.store.blocks.zero_digests import ZeroDigests
from blast_transport.store.targets.file_target import FileTarget
from blast_transport.store.targets.target import Buffer, Target

_RUNS_AT_ONCE = 1024
"""Runs in one answer of the engine, whose memory it bounds."""

Run = tuple[int, int]
"""(first, behind the last)."""


InRow = tuple[int, int, int, int]
"""Of a row: before which byte all has come, the first block that is not stored, bytes filled, bytes of them stored."""


class LinkRead(NamedTuple):
    """Result of one read: `amount` bytes; the row is then at `place`, and `payload` bytes of the last frame remain.

    `slow`: the store delayed the call. `broken`: error number of the link, 0 if it was closed.
    """

    place: InRow
    amount: int
    payload: int
    slow: bool
    broken: int | None


class CompiledHeld:
    """Read-only `BlockMap` of the store."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def held(self) -> int:
        """Return the number of held blocks."""
        return int(self._native.held)

    def __contains__(self, block: int) -> bool:
        return bool(self._native.has(block))

    def first_missing(self, start: int = 0) -> int:
        """Return the first block from `start` on that is not held."""
        return int(self._native.first_missing(start))

    def ranges(self) -> Iterator[Range]:
        """Yield the held blocks as ranges in order."""
        return self._ranges(True, 0, 1 << 63)

    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """Yield the missing blocks from `start` to before `stop`, as ranges in order."""
        return self._ranges(False, start, stop)

    def _ranges(self, there: bool, start: int, stop: int) -> Iterator[Range]:
        while runs := self._native.runs(there, start, stop, _RUNS_AT_ONCE):
            for begin, end in runs:
                yield begin, end - begin
            start = runs[-1][1]


class CompiledStore:
    """`BlockStore` in a file, with the digests `blake3`, implemented by `module`.

    `native` is the store as that module's other functions take it. `checked` and `holes` are those of the reference.
    Raises StoreError.
    """

    engine = COMPILED

    def __init__(  # noqa: PLR0913, PLR0917 - a store's, and the module
        self,
        module: ModuleType,
        layout: BlockLayout,
        suite: Suite,
        target: FileTarget,
        checked: Callable[[], None],
        holes: Iterable[Range] = (),
    ) -> None:
        self.layout, self.suite = layout, suite
        self.target: Target = target
        self._max_bytes = target.max_bytes
        self.durable: bool | None = None
        self.module = module
        self.native = self.do(
            partial(
                module.FileStore,
                *target.files,
                block_size=layout.block_size,
                size=layout.size,
                ahead=max(1, AHEAD_BYTES // layout.block_size),
                max_bytes=self._max_bytes,
            )
        )
        self.held = CompiledHeld(self.native)
        for block, digest in target.blocks_on_disk(layout, suite):
            checked()
            self.native.resume(block, digest)
        zeros = ZeroDigests(layout, suite)
        for first, count in target.make_holes(layout, holes):
            for block in range(first, first + count):
                checked()
                self.native.resume(block, zeros.of(block, 1))

    @property
    def descriptor(self) -> int | None:
        """Return the descriptor of the regular file that is being written, if any."""
        return self.target.descriptor

    @property
    def position(self) -> int:
        """Return the first block that is not held."""
        return int(self.native.position)

    @property
    def corrupt(self) -> int:
        """Return the number of blocks received with a wrong digest."""
        return int(self.native.corrupt)

    @property
    def reach(self) -> int:
        """Return the block before which blocks may be written."""
        return int(self.native.reach)

    @property
    def complete(self) -> bool:
        """Return whether all blocks are held."""
        return bool(self.native.complete)

    def put(self, block: int, data: Buffer) -> bool:
        """Store a block; return whether it was new and correct."""
        return self.put_all(block, [data]) == 1

    def put_all(self, first: int, row: Sequence[Buffer]) -> int:
        """Store consecutive blocks; return how many were new and correct."""
        return int(self.do(self.native.put_all, first, row))

    def put_row(self, first: int, data: memoryview) -> None:
        """Store whole blocks from `first` on, one after the other in `data`."""
        self.do(self.native.put_row, first, data)

    def take_from(self, link: int, row: memoryview, place: InRow, frames: tuple[int, int]) -> LinkRead:
        """Read data from the descriptor of a chain's link into `row`, which is filled up to `place`.

        `frames`: the bytes before the next frame, and the maximum to read. Raise StoreError.
        """
        place, amount, payload, slow, broken = self.do(
            self.module.take_from_link, self.native, link, row, place, frames
        )
        return LinkRead(place, amount, payload, slow, broken)

    def claim(self, first: int, stop: int) -> list[Range]:
        """Return the blocks that the caller may now write itself."""
        return ranges(self.do(self.native.claim, first, stop))

    def written(self, first: int, digests: bytes) -> None:
        """Record that claimed blocks are written."""
        self.do(self.native.written, first, digests)

    def release(self, first: int, stop: int) -> None:
        """Return claimed blocks that will not be written."""
        self.do(self.native.release, first, stop)

    def expect(self, first: int, digests: bytes) -> None:
        """Add the sender's digests of the blocks from `first` on."""
        if not self.do(self.native.expect, first, digests):
            raise RemoteProtocolError("Digests are out of order, or beyond the last block")

    def has(self, block: int) -> bool:
        """Return whether the block is held."""
        return bool(self.native.has(block))

    def waiting(self) -> list[int]:
        """Return no blocks: a file accepts blocks in any order."""
        return []

    def read(self, offset: int, view: memoryview) -> int:
        """Read stored data before the first missing block."""
        end = self.layout.offset(self.position)
        if self.layout.size is not None:
            end = min(end, self.layout.size)
        return 0 if offset >= end else self.target.read(offset, view[: end - offset])

    def block(self, number: int) -> bytearray | None:
        """Return a held block, None if it is not held."""
        if not self.has(number):
            return None
        data = bytearray(self.layout.length(number))
        count = self.target.read(self.layout.offset(number), memoryview(data))
        return data if count == len(data) else None

    def finish_size(self, size: int) -> None:
        """Set the size of a stream."""
        self.layout = self.layout.closed(size)
        self.do(self.native.end_at, size)

    def refuse(self, block: int) -> None:
        """Mark this block as received with wrong data."""
        self.do(self.native.refuse, block)

    def take_wrong(self) -> list[Range]:
        """Return the blocks received with a wrong digest since the last call, each once, in order."""
        return ranges(self.do(self.native.take_wrong))

    def commit(self, digest: bytes, *, fsync: bool = False) -> None:
        """Verify the digest of the whole and complete the target."""
        assert self.layout.size is not None
        if self.suite.whole(self.native.sent(self.layout.blocks)) != digest:
            raise DigestMismatchError("all bytes arrived, but their digest is not the sender's; send the file again")
        self.durable = self.target.commit(self.layout.size, fsync=fsync)
        self._close()

    def discard(self, *, resumable: bool = False) -> None:
        """Remove the data, or leave it for a later session."""
        # Close first, because the target may release the files to another session.
        self._close()
        self.target.discard(resumable=resumable)

    def _close(self) -> None:
        try:
            self.native.close()
        except (OSError, self.module.EngineFault):
            """Pending records, which are not written: their blocks are received again."""

    def do(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Call compiled code, and convert its errors. Raise StoreError, EngineError."""
        try:
            return call(*arguments)
        except OSError as error:
            raise StoreError(f"cannot write {self.target.place}: {sentence(error)}") from error
        except self.module.TooManyBytes as error:
            raise StoreError(f"more bytes came than the {self._max_bytes} that this agent takes") from error
        except self.module.EngineFault as error:
            raise engine_error(error) from error


def ranges(runs: Sequence[Run]) -> list[Range]:
    """Convert runs to ranges (first, number)."""
    return [(first, stop - first) for first, stop in runs]
