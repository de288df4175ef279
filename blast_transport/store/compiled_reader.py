"""A sender's blocks, of which the compiled engine digests those of a file that nobody has read yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from blast_transport.base.engines import COMPILED, engine_error
from blast_transport.base.errors import SourceChangedError, sentence
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import Layout
from blast_transport.blocks.sealing import Sealer
from blast_transport.store.block_reader import BlockReader
from blast_transport.store.source import Source

_MAX_AT_ONCE = 64
"""Blocks in one call, after which others may say what they want."""


class CompiledReader(BlockReader):
    """As a `BlockReader` of a file, by the module `native`, for digests `blake3`."""

    engine = COMPILED

    def __init__(  # noqa: PLR0913, PLR0917 - a reader's, and the module
        self,
        native: ModuleType,
        source: Source,
        layout: Layout,
        suite: Suite,
        sealer: Sealer | None,
        holes: Iterable[Range] = (),
    ) -> None:
        super().__init__(source, layout, suite, sealer, holes)
        self.native = native

    def digest(self, most: int) -> bool:
        """As of a `BlockReader`. Raises SourceChangedError."""
        found = False
        while most > 0 and (count := self._ready_blocks(min(most, _MAX_AT_ONCE))):
            before = self.digested
            self.note(before, self._next_digests(count))
            most -= self.digested - before
            found = True
        return found

    def _next_digests(self, most: int) -> bytes:
        """Return the digests of at most `most` of the next blocks; blocks in holes are not read."""
        first = self.digested
        data = self._holes.first_missing(first)
        if data > first:
            return self._zeros.of(first, min(data - first, most))
        return self._digests_of(first, self._holes.first_held(first, first + most) - first)

    def _ready_blocks(self, most: int) -> int:
        """So many of the next ones can be read without waiting."""
        return max(0, min(most, self.readable - self.digested))

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
            # It names the change, in the words of the other engine.
            self.source.check_unchanged()
            raise SourceChangedError(f"the file ends at byte {error}: it became shorter while it was read") from error
        except OSError as error:
            raise SourceChangedError(f"the file cannot be read: {sentence(error)}") from error
        except self.native.EngineFault as error:
            raise engine_error(error) from error
