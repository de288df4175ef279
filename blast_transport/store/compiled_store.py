"""The store of the compiled engine, for targets that are files: it looks at digests, books and writes in one call.

Such a call does without the interpreter's lock. What is said here is what `store.py`, the reference, says.
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
from blast_transport.blocks.layout import Layout
from blast_transport.store.file_target import FileTarget
from blast_transport.store.store import AHEAD_BYTES
from blast_transport.store.target import Buffer, Target
from blast_transport.store.zero_digests import ZeroDigests

_RUNS_AT_ONCE = 1024

Run = tuple[int, int]
"""(first, behind the last)."""


InRow = tuple[int, int, int, int]
"""Of a row: before which byte all has come, the first block that is not stored, bytes filled, bytes of them stored."""


class Taken(NamedTuple):
    """What one call took: `amount` bytes, so that the row is at `place`; `payload` bytes of the last frame are left.

    `slow`: the store made us wait. `broken`: the number of what is wrong with the link, 0 if it was closed.
    """

    place: InRow
    amount: int
    payload: int
    slow: bool
    broken: int | None


class CompiledHeld:
    """As a `BlockMap`, to be looked at only."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def held(self) -> int:
        """How many."""
        return int(self._native.held)

    def __contains__(self, block: int) -> bool:
        return bool(self._native.has(block))

    def first_missing(self, start: int = 0) -> int:
        """As of a `BlockMap`."""
        return int(self._native.first_missing(start))

    def ranges(self) -> Iterator[Range]:
        """As of a `BlockMap`."""
        return self._ranges(True, 0, 1 << 63)

    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """As of a `BlockMap`."""
        return self._ranges(False, start, stop)

    def _ranges(self, there: bool, start: int, stop: int) -> Iterator[Range]:
        while runs := self._native.runs(there, start, stop, _RUNS_AT_ONCE):
            for begin, end in runs:
                yield begin, end - begin
            start = runs[-1][1]


class CompiledStore:
    """A `BlockStore` in a file, of the digests `blake3`, by the `module`. All but these attributes is compiled.

    `native` is the store as that module has it, for its other calls. `checked` and `holes` as of the reference. Raises
    StoreError.
    """

    engine = COMPILED

    def __init__(  # noqa: PLR0913, PLR0917 - a store's, and the module
        self,
        module: ModuleType,
        layout: Layout,
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
        """The file that is being written."""
        return self.target.descriptor

    @property
    def position(self) -> int:
        """The first block that is not held."""
        return int(self.native.position)

    @property
    def corrupt(self) -> int:
        """Blocks that came with a wrong digest."""
        return int(self.native.corrupt)

    @property
    def reach(self) -> int:
        """As of the reference."""
        return int(self.native.reach)

    @property
    def complete(self) -> bool:
        """As of the reference."""
        return bool(self.native.complete)

    def put(self, block: int, data: Buffer) -> bool:
        """As of the reference."""
        return self.put_all(block, [data]) == 1

    def put_all(self, first: int, row: Sequence[Buffer]) -> int:
        """As of the reference."""
        return int(self.do(self.native.put_all, first, row))

    def put_row(self, first: int, data: memoryview) -> None:
        """As of the reference."""
        self.do(self.native.put_row, first, data)

    def take_from(self, link: int, row: memoryview, place: InRow, frames: tuple[int, int]) -> Taken:
        """Take data from the open descriptor of a chain's link by way of `row`, which stands at `place`.

        `frames`: the bytes that come before the next one, and the most that are taken. Raises StoreError.
        """
        place, amount, payload, slow, broken = self.do(
            self.module.take_from_link, self.native, link, row, place, frames
        )
        return Taken(place, amount, payload, slow, broken)

    def claim(self, first: int, stop: int) -> list[Range]:
        """As of the reference."""
        return ranges(self.do(self.native.claim, first, stop))

    def written(self, first: int, digests: bytes) -> None:
        """As of the reference."""
        self.do(self.native.written, first, digests)

    def release(self, first: int, stop: int) -> None:
        """As of the reference."""
        self.do(self.native.release, first, stop)

    def expect(self, first: int, digests: bytes) -> None:
        """As of the reference."""
        if not self.do(self.native.expect, first, digests):
            raise RemoteProtocolError("Digests of blocks that there are not, or whose turn has not come")

    def has(self, block: int) -> bool:
        """As of the reference."""
        return bool(self.native.has(block))

    def waiting(self) -> list[int]:
        """A file takes blocks in any order."""
        return []

    def read(self, offset: int, view: memoryview) -> int:
        """As of the reference."""
        end = self.layout.offset(self.position)
        if self.layout.size is not None:
            end = min(end, self.layout.size)
        return 0 if offset >= end else self.target.read(offset, view[: end - offset])

    def block(self, number: int) -> bytearray | None:
        """As of the reference."""
        if not self.has(number):
            return None
        data = bytearray(self.layout.length(number))
        count = self.target.read(self.layout.offset(number), memoryview(data))
        return data if count == len(data) else None

    def finish_size(self, size: int) -> None:
        """As of the reference."""
        self.layout = self.layout.closed(size)
        self.do(self.native.end_at, size)

    def refuse(self, block: int) -> None:
        """As of the reference."""
        self.do(self.native.refuse, block)

    def take_wrong(self) -> list[Range]:
        """As of the reference; each block once, in order."""
        return ranges(self.do(self.native.take_wrong))

    def commit(self, digest: bytes, *, fsync: bool = False) -> None:
        """As of the reference."""
        assert self.layout.size is not None
        if self.suite.whole(self.native.sent(self.layout.blocks)) != digest:
            raise DigestMismatchError("all bytes arrived, but their digest is not the sender's; send the file again")
        self.durable = self.target.commit(self.layout.size, fsync=fsync)
        self._close()

    def discard(self, *, resumable: bool = False) -> None:
        """As of the reference."""
        # First, for the target lets others go on with what it leaves.
        self._close()
        self.target.discard(resumable=resumable)

    def _close(self) -> None:
        try:
            self.native.close()
        except (OSError, self.module.EngineFault):
            """Records that are not written: their blocks come again."""

    def do(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Call what is compiled, with our own names for what goes wrong. Raises StoreError, EngineError."""
        try:
            return call(*arguments)
        except OSError as error:
            raise StoreError(f"cannot write {self.target.place}: {sentence(error)}") from error
        except self.module.TooManyBytes as error:
            raise StoreError(f"more bytes came than the {self._max_bytes} that this agent takes") from error
        except self.module.EngineFault as error:
            raise engine_error(error) from error


def ranges(runs: Sequence[Run]) -> list[Range]:
    """The same as (first, number)."""
    return [(first, stop - first) for first, stop in runs]
