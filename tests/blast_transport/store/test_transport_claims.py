"""Claims of blocks: no other transport overwrites them, and only verified blocks are held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_transport.base.errors import StoreError
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.file_target import FileRules, FileTarget, open_directory
from blast_transport.store.targets.memory_target import MemoryTarget
from tests.support.transport.engines import asked_engine, checked_store
from tests.support.transport.transport_data import SUITE, Data, data_of

BLOCKS = 8


@pytest.fixture
def data() -> Data:
    return data_of(40 * BLOCKS)


@pytest.fixture
def store(data: Data, tmp_path: Path) -> Iterator[BlockStore]:
    store = file_store(data, tmp_path, FileRules())
    yield store
    store.discard()


def file_store(data: Data, folder: Path, rules: FileRules) -> BlockStore:
    target = FileTarget(open_directory(folder), folder, "file", data.layout.size, "id", rules)
    return checked_store(asked_engine(), data.layout, target)


def digests(data: Data, *blocks: int) -> bytes:
    return b"".join(SUITE.block(data.block(block)) for block in blocks)


def test_held_or_claimed_blocks_cannot_be_claimed_again(data: Data, store: BlockStore) -> None:
    store.put(2, data.block(2))
    assert store.claim(0, 5) == [(0, 2), (3, 2)]
    assert store.claim(0, 6) == [(5, 1)]
    assert not store.put(3, data.block(3))
    assert store.claim(6, BLOCKS + 5) == [(6, 2)]


def test_written_blocks_are_held_and_released_blocks_are_free(data: Data, store: BlockStore) -> None:
    store.claim(0, 4)
    store.written(0, digests(data, 0, 1))
    store.release(2, 4)
    assert store.held.held == 2 and store.position == 2
    assert store.put(2, data.block(2))
    assert store.position == 3


def test_wrongly_written_block_is_requested_again(data: Data, store: BlockStore) -> None:
    store.expect(0, data.digests())
    store.claim(0, 2)
    store.written(0, digests(data, 0, 0))
    assert store.held.held == 1
    assert store.take_wrong() == [(1, 1)]
    assert store.put(1, data.block(1))


def test_pipeline_row_does_not_overwrite_claimed_blocks(data: Data, store: BlockStore) -> None:
    store.claim(1, 2)
    store.put_row(0, memoryview(b"".join(data.block(block) for block in range(3))))
    assert [block for block in range(3) if block in store.held] == [0, 2]
    view = memoryview(bytearray(40))
    store.target.read(40, view)
    assert bytes(view) == bytes(40)


def test_claims_require_file_target(data: Data) -> None:
    with pytest.raises(StoreError, match="is not a file"):
        SessionStore(data.layout, SUITE, MemoryTarget("m", 1 << 20)).claim(0, 1)


def test_claim_beyond_size_limit_is_rejected(tmp_path: Path) -> None:
    """The size of a stream is unknown, so the limit applies to its blocks as they arrive."""
    stream = Data(b"", BlockLayout(None, 10, 4))
    store = file_store(stream, tmp_path, FileRules(max_bytes=100))
    try:
        assert store.claim(0, 2) == [(0, 2)]
        with pytest.raises(StoreError, match="more bytes came than the 100"):
            store.claim(2, 3)
    finally:
        store.discard()
