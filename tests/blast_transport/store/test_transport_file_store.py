"""Reception and resumption of a file by the store of either engine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.errors import DigestMismatchError
from blast_transport.store.blocks.block_store import BlockStore
from tests.support.transport import engines
from tests.support.transport.transport_data import SUITE, Data, data_of

by_both = pytest.mark.parametrize("engine", engines.BOTH)


def file_store(engine: str, data: Data, directory: Path) -> BlockStore:
    return engines.file_store(engine, directory, data.layout)


def asked_again(store: BlockStore) -> list[int]:
    return [block for first, count in store.take_wrong() for block in range(first, first + count)]


def wrong(block: bytes) -> bytes:
    return bytes([block[0] ^ 1]) + block[1:]


def partial(directory: Path) -> Path:
    return directory / ".blast-id-file"


def go_on(engine: str, directory: Path, data: Data) -> set[int]:
    """Resume the file in a new session, receive the rest and check it; return the blocks that the session held."""
    store = file_store(engine, data, directory)
    resumed = {block for first, count in store.held.ranges() for block in range(first, first + count)}
    stored = partial(directory).read_bytes()
    for block in resumed:
        begin = data.layout.offset(block)
        assert SUITE.block(stored[begin : begin + data.layout.length(block)]) == SUITE.block(data.block(block))
    store.expect(0, data.digests())
    assert asked_again(store) == []
    for block in range(data.blocks):
        assert store.put(block, data.block(block)) == (block not in resumed)
    assert store.complete
    store.commit(data.whole)
    assert (directory / "file").read_bytes() == data.content
    assert [entry.name for entry in directory.iterdir()] == ["file"]
    return resumed


def in_directory(check: Callable[[Path], None]) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        check(directory)
    finally:
        shutil.rmtree(directory)


@by_both
@settings(max_examples=60)
@given(st.permutations(range(25)), st.integers(0, 25), st.data())
def test_transfer_resumes_after_kill_at_any_byte(
    engine: str, order: list[int], count: int, draw: st.DataObject
) -> None:
    """The kernel keeps all writes before the kill; records are written after the data of the file."""
    data = data_of(1000)

    def check(directory: Path) -> None:
        store = file_store(engine, data, directory)
        for block in order[:count]:
            store.put(block, data.block(block))
        store.discard(resumable=True)
        records = Path(f"{partial(directory)}.blocks")
        os.truncate(records, draw.draw(st.integers(0, records.stat().st_size)))
        kept = records.stat().st_size // 24
        resumed = go_on(engine, directory, data)
        assert resumed == set(order[:count][:kept])

    in_directory(check)


@by_both
@settings(max_examples=60)
@given(st.data())
def test_resumption_ignores_lost_or_corrupt_blocks(engine: str, draw: st.DataObject) -> None:
    data = data_of(1000)

    def check(directory: Path) -> None:
        store = file_store(engine, data, directory)
        for block in range(data.blocks):
            store.put(block, data.block(block))
        store.discard(resumable=True)
        for path in (partial(directory), Path(f"{partial(directory)}.blocks")):
            content = bytearray(path.read_bytes())
            for _ in range(draw.draw(st.integers(0, 3))):
                content[draw.draw(st.integers(0, len(content) - 1))] ^= draw.draw(st.integers(1, 255))
            del content[draw.draw(st.integers(len(content) // 2, len(content))) :]
            path.write_bytes(content)
        go_on(engine, directory, data)

    in_directory(check)


@by_both
def test_transfer_resumes_twice_after_torn_record(engine: str, tmp_path: Path) -> None:
    """Records after a torn record are readable."""
    data = data_of(1000)
    store = file_store(engine, data, tmp_path)
    for block in range(5):
        store.put(block, data.block(block))
    store.discard(resumable=True)
    records = tmp_path / ".blast-id-file.blocks"
    os.truncate(records, 24 * 3 + 7)
    store = file_store(engine, data, tmp_path)
    assert store.held.held == 3
    for block in range(10, 15):
        store.put(block, data.block(block))
    store.discard(resumable=True)
    assert go_on(engine, tmp_path, data) == {0, 1, 2, 10, 11, 12, 13, 14}


@by_both
def test_recorded_block_with_wrong_digest_is_requested_again(engine: str, tmp_path: Path) -> None:
    data = data_of(1000)
    store = file_store(engine, data, tmp_path)
    store.put(3, wrong(data.block(3)))
    store.put(4, data.block(4))
    store.discard(resumable=True)
    store = file_store(engine, data, tmp_path)
    assert store.held.held == 2
    store.expect(0, data.digests())
    assert asked_again(store) == [3] and list(store.held.ranges()) == [(4, 1)]
    store.put(3, data.block(3))
    store.discard(resumable=True)
    assert go_on(engine, tmp_path, data) == {3, 4}


@by_both
def test_records_are_written_during_transfer(engine: str, tmp_path: Path) -> None:
    """The process exits without closing its store."""
    data = data_of(8000)
    child = os.fork()
    if child == 0:
        store = file_store(engine, data, tmp_path)
        for block in range(150):
            store.put(block, data.block(block))
        os._exit(0)
    os.waitpid(child, 0)
    assert len(go_on(engine, tmp_path, data)) == 128


@by_both
def test_pipeline_row_is_held_except_wrong_block(engine: str, tmp_path: Path) -> None:
    data = data_of(1000)
    store = file_store(engine, data, tmp_path)
    store.expect(0, data.digests())
    store.put_row(0, memoryview(data.content[:80] + wrong(data.block(2)) + data.content[120:400]))
    assert asked_again(store) == [2]
    assert list(store.held.ranges()) == [(0, 2), (3, 7)]
    assert store.position == 2
    view = memoryview(bytearray(200))
    assert store.read(0, view) == 80 and view[:80] == data.content[:80]
    assert store.read(80, view) == 0


@by_both
def test_commit_rejects_wrong_digest_of_whole_file(engine: str, tmp_path: Path) -> None:
    data = data_of(200)
    store = file_store(engine, data, tmp_path)
    for block in range(data.blocks):
        store.put(block, data.block(block))
    store.expect(0, data.digests())
    assert store.complete
    with pytest.raises(DigestMismatchError):
        store.commit(bytes(32))
    store.discard()
    assert list(tmp_path.iterdir()) == []
