"""Stores of files by either engine, for tests that hold for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_transport.base.engines import AUTO, COMPILED, PYTHON
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.opening import open_store
from blast_transport.store.targets.file_target import ANY_PRIVATE, FileRules, FileTarget, open_directory
from tests.support.transport.transport_data import SUITE

BOTH = (PYTHON, pytest.param(COMPILED, marks=pytest.mark.compiled))
"""For parametrize. Where every test must run, those of an engine that is not there fail."""


class _Asked:
    engine = AUTO


def asked_engine() -> str:
    """Return the engine for the hosts of a test, unless the test chooses one: see the fixture `every_engine`."""
    return _Asked.engine


@contextmanager
def asking_for(engine: str) -> Iterator[None]:
    """Use this engine for all hosts that are created in the block."""
    before, _Asked.engine = _Asked.engine, engine
    try:
        yield
    finally:
        _Asked.engine = before


def file_store(engine: str, directory: Path, layout: BlockLayout, rules: FileRules = ANY_PRIVATE) -> BlockStore:
    """Return a store of the file `file` with this engine."""
    return checked_store(
        engine, layout, FileTarget(open_directory(directory), directory, "file", layout.size, "id", rules)
    )


def checked_store(engine: str, layout: BlockLayout, target: FileTarget) -> BlockStore:
    """Return a store of that file, and check that it uses this engine."""
    store = open_store(engine, layout, SUITE, target)
    assert engine in (AUTO, store.engine)
    return store
