"""Reader whose digests of file data that was not read yet are computed by the compiled engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from blast_transport.base.engines import COMPILED, compiled, engine_error
from blast_transport.base.errors import SourceChangedError, sentence
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.sealing import Sealer
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.source import Source

COMPILED_SUITE = "blake3"
"""The digests that the engine computes."""
_MAX_AT_ONCE = 64
"""Maximum blocks of one call, which holds up the caller."""


def open_reader(  # noqa: PLR0913, PLR0917 - a reader's, and the engine
    engine: str,
    source: Source,
    layout: BlockLayout,
    suite: Suite,
    sealer: Sealer | None,
    holes: Iterable[Range] = (),
) -> BlockReader:
    """Open a reader by this engine; Python reads sources other than files. Raise WrongInputError."""
    native = compiled(engine)
    if native is None or suite.name != COMPILED_SUITE or source.descriptor is None:
        return BlockReader(source, layout, suite, sealer, holes)
    return CompiledReader(native, source, layout, suite, sealer, holes)


class CompiledReader(BlockReader):
    """`BlockReader` of a file that uses the module `native`, for the digests `blake3`."""

    engine = COMPILED

    def __init__(  # noqa: PLR0913, PLR0917 - a reader's, and the module
        self,
        native: ModuleType,
        source: Source,
        layout: BlockLayout,
        suite: Suite,
        sealer: Sealer | None,
        holes: Iterable[Range] = (),
    ) -> None:
        super().__init__(source, layout, suite, sealer, holes)
        self.native = native

    def digest(self, max_blocks: int) -> bool:
        """Digest up to `max_blocks` of the next readable blocks; return whether any was. Raise SourceChangedError."""
        found = False
        while max_blocks > 0 and (count := self._ready_blocks(min(max_blocks, _MAX_AT_ONCE))):
            before = self.digested
            self.note(before, self._next_digests(count))
            max_blocks -= self.digested - before
            found = True
        return found

    def _next_digests(self, max_blocks: int) -> bytes:
        """Return the digests of at most `max_blocks` of the next blocks; blocks in holes are not read."""
        first = self.digested
        data = self._holes.first_missing(first)
        if data > first:
            return self._zeros.of(first, min(data - first, max_blocks))
        return self._digests_of(first, self._holes.first_held(first, first + max_blocks) - first)

    def _ready_blocks(self, max_blocks: int) -> int:
        """Return how many of the next blocks can be read without waiting, at most `max_blocks`."""
        return max(0, min(max_blocks, self.readable - self.digested))

    def _digests_of(self, first: int, count: int) -> bytes:
        size, descriptor = self.source.size, self.source.descriptor
        found: bytes = self.by_engine(
            self.native.digests_of_file, descriptor, first, count, self.layout.block_size, size
        )
        return found

    def by_engine(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Let the engine do something with the file. Raises SourceChangedError if that cannot be read."""
        try:
            return call(*arguments)
        except EOFError as error:
            # The check reports the change with the same message as the Python engine.
            self.source.check_unchanged()
            raise SourceChangedError(f"the file ends at byte {error}: it became shorter while it was read") from error
        except OSError as error:
            raise SourceChangedError(f"the file cannot be read: {sentence(error)}") from error
        except self.native.EngineFault as error:
            raise engine_error(error) from error
