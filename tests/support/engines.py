"""Stores of files by either engine, for tests that hold for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.blocks.layout import Layout
from blast_transport.store.block_store import BlockStore
from blast_transport.store.file_target import ANY_PRIVATE, FileRules, FileTarget, open_directory
from blast_transport.store.opening import open_store
from tests.support.transport_data import SUITE

BOTH = (PYTHON, pytest.param(COMPILED, marks=pytest.mark.compiled))
"""For parametrize. Where every test must run, those of an engine that is not there fail."""


def file_store(engine: str, directory: Path, layout: Layout, rules: FileRules = ANY_PRIVATE) -> BlockStore:
    """A store of the file `file`; it is of that engine, and of no other."""
    target = FileTarget(open_directory(directory), directory, "file", layout.size, "id", rules)
    store = open_store(engine, layout, SUITE, target)
    assert store.engine == engine
    return store
