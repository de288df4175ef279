"""Which store and assembly a receiver gets, and which reader a sender: by their engine, and by what it can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blast_transport.base.engines import compiled
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import Layout
from blast_transport.blocks.sealing import Sealer
from blast_transport.store.assembly import Assembly
from blast_transport.store.block_assembly import BlockAssembly
from blast_transport.store.block_reader import BlockReader
from blast_transport.store.block_store import BlockStore
from blast_transport.store.compiled_assembly import CompiledAssembly
from blast_transport.store.compiled_reader import CompiledReader
from blast_transport.store.compiled_store import CompiledStore
from blast_transport.store.file_target import FileTarget
from blast_transport.store.source import Source
from blast_transport.store.store import Store
from blast_transport.store.target import Target

_COMPILED_SUITE = "blake3"


def _nothing() -> None:
    """Nobody wants to know."""


def open_store(  # noqa: PLR0913, PLR0917 - a store's, and the engine
    engine: str,
    layout: Layout,
    suite: Suite,
    target: Target,
    checked: Callable[[], None] = _nothing,
    holes: Iterable[Range] = (),
) -> BlockStore:
    """A store by this engine (`base/engines.py`); `checked` and `holes` as of a `Store`.

    What is no file, or is proven by another digest, is Python's whichever engine is asked for: `engine` of the store
    says which it became. Raises WrongInputError, StoreError.
    """
    native = compiled(engine)
    if native is None or suite.name != _COMPILED_SUITE or not isinstance(target, FileTarget):
        return Store(layout, suite, target, checked, holes)
    return CompiledStore(native, layout, suite, target, checked, holes)


def open_assembly(store: BlockStore, sealer: Sealer | None) -> BlockAssembly:
    """What fills this store, by its engine. What is sealed is opened, and so put together, by Python."""
    if isinstance(store, CompiledStore) and sealer is None:
        return CompiledAssembly(store)
    return Assembly(store, sealer)


def open_reader(  # noqa: PLR0913, PLR0917 - a reader's, and the engine
    engine: str,
    source: Source,
    layout: Layout,
    suite: Suite,
    sealer: Sealer | None,
    holes: Iterable[Range] = (),
) -> BlockReader:
    """A reader by this engine. What is no file is read by Python, as in `open_store`. Raises WrongInputError."""
    native = compiled(engine)
    if native is None or suite.name != _COMPILED_SUITE or source.descriptor is None:
        return BlockReader(source, layout, suite, sealer, holes)
    return CompiledReader(native, source, layout, suite, sealer, holes)
