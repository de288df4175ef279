"""Which store and assembly a receiver gets: by the engine, and by what it can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blast_transport.base.engines import compiled
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.sealing import Sealer
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.block_assembly import BlockAssembly
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.compiled_assembly import CompiledAssembly
from blast_transport.store.blocks.compiled_store import CompiledStore
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.sources.compiled_reader import COMPILED_SUITE
from blast_transport.store.targets.file_target import FileTarget
from blast_transport.store.targets.target import Target


def _nothing() -> None:
    """Do nothing."""


def open_store(  # noqa: PLR0913, PLR0917 - a store's, and the engine
    engine: str,
    layout: BlockLayout,
    suite: Suite,
    target: Target,
    checked: Callable[[], None] = _nothing,
    holes: Iterable[Range] = (),
) -> BlockStore:
    """Open a store by this engine (`base/engines.py`); `checked` and `holes` are those of `SessionStore`.

    Targets other than files, and other digests, use Python with any engine: `engine` of the store names the one in use.
    Raise WrongInputError, StoreError.
    """
    native = compiled(engine)
    if native is None or suite.name != COMPILED_SUITE or not isinstance(target, FileTarget):
        return SessionStore(layout, suite, target, checked, holes)
    return CompiledStore(native, layout, suite, target, checked, holes)


def open_assembly(store: BlockStore, sealer: Sealer | None) -> BlockAssembly:
    """Return an assembly that fills this store, by its engine; Python unseals, and so assembles, sealed blocks."""
    if isinstance(store, CompiledStore) and sealer is None:
        return CompiledAssembly(store)
    return Assembly(store, sealer)
