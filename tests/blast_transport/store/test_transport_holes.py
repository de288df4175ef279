"""Holes of sparse files: detection, recreation at the receiver, and repair of wrong ones."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.blocks.block_map import BlockMap, Range, count_held
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.files.holes import blocks_within, holes_of, next_data, next_hole
from blast_transport.store.opening import open_store
from blast_transport.store.sources.compiled_reader import open_reader
from blast_transport.store.sources.pieces import FilePiece, PiecesSource
from blast_transport.store.sources.source import FileSource, opened_file
from blast_transport.store.targets import file_target
from blast_transport.store.targets.file_target import FileTarget, open_directory
from blast_transport.store.targets.memory_target import MemoryTarget
from tests.support.transport.engines import BOTH
from tests.support.transport.transport_data import SUITE, Data, InOrder, data_of

PAGE = 4096
by_both = pytest.mark.parametrize("engine", BOTH)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


def sparse(path: Path, pages: Sequence[bool], tail: int = 0) -> bytes:
    """Write a file of pages with data or holes, of which the last is `tail` bytes shorter, and return its content."""
    size = len(pages) * PAGE - tail
    content = bytearray(size)
    with path.open("wb") as file:
        file.truncate(size)
        for number, is_data in enumerate(pages):
            if is_data:
                data = os.urandom(min(PAGE, size - number * PAGE))
                file.seek(number * PAGE)
                file.write(data)
                content[number * PAGE : number * PAGE + len(data)] = data
    return bytes(content)


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, PAGE - 1))
def test_holes_are_found_where_nothing_was_written(pages: list[bool], tail: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        content = sparse(path, pages, tail)
        with opened_file(path) as source:
            holes = source.holes()
        expected = [place for place, is_data in enumerate(pages) if not is_data]
        assert sum(length for _, length in holes) == sum(min(PAGE, len(content) - place * PAGE) for place in expected)
        assert all(not any(content[offset : offset + length]) for offset, length in holes)
        assert all(before + length < offset for (before, length), (offset, _) in itertools.pairwise(holes))


def test_file_system_without_seek_hole_reports_no_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(_descriptor: int, _offset: int, _whence: int) -> int:
        raise OSError(22, "Invalid argument")

    sparse(tmp_path / "file", [False] * 4)
    with (tmp_path / "file").open("rb") as file:
        assert holes_of(file.fileno(), 4 * PAGE) == [(0, 4 * PAGE)]
        monkeypatch.setattr(os, "lseek", cannot)
        assert holes_of(file.fileno(), 4 * PAGE) == []
        assert (next_hole(file.fileno(), 5, 100), next_data(file.fileno(), 5, 100)) == (100, 5)


def test_write_into_found_hole_is_detected_as_change(tmp_path: Path) -> None:
    path = tmp_path / "file"
    sparse(path, [True, False, True])
    with opened_file(path) as source:
        assert source.holes() == [(PAGE, PAGE)]
        with path.open("r+b") as file:
            file.seek(PAGE)
            file.write(b"filled")
        with pytest.raises(Exception, match="was changed while it was sent"):
            source.check_unchanged()


def test_holes_of_pieces_are_offset_by_their_position(tmp_path: Path) -> None:
    pages = 32
    pieces: list[memoryview | FilePiece] = [memoryview(b"head")]
    for name in ("one", "two"):
        sparse(tmp_path / name, [name == "two", *[False] * (pages - 1)])
        with opened_file(tmp_path / name) as source:
            assert isinstance(source, FileSource)
            pieces.append(FilePiece(tmp_path / name, source._state))
    holes = PiecesSource(pieces).holes()
    assert holes == [(4, pages * PAGE), (4 + (pages + 1) * PAGE, (pages - 1) * PAGE)]
    (tmp_path / "one").unlink()
    assert PiecesSource(pieces).holes() == holes[1:]


layouts = st.builds(BlockLayout, st.integers(1, 400), st.integers(1, 9), st.integers(1, 5))


@st.composite
def byte_ranges(draw: st.DrawFn, size: int) -> list[Range]:
    bounds = sorted(draw(st.sets(st.integers(0, size), max_size=12)))
    kept = [(begin, stop - begin) for begin, stop in itertools.pairwise(bounds)]
    return [one for one in kept if draw(st.booleans())]


@given(layouts, st.data())
def test_blocks_within_holes_contain_only_hole_bytes(layout: BlockLayout, draw: st.DataObject) -> None:
    assert layout.size is not None
    holes = draw.draw(byte_ranges(layout.size))
    empty = {place for offset, length in holes for place in range(offset, offset + length)}
    expected = [
        block
        for block in range(layout.blocks)
        if empty.issuperset(range(layout.offset(block), layout.offset(block) + layout.length(block)))
    ]
    found = blocks_within(holes, layout, 100, 1000)
    assert [block for first, count in found for block in range(first, first + count)] == expected
    few = blocks_within(holes, layout, 2, 3)
    assert set(few) <= set(found) or sum(count for _, count in few) == 3
    assert len(few) <= 2 and sum(count for _, count in few) <= 3
    assert [first for first, _ in few] == sorted(first for first, _ in few)


def test_only_largest_holes_are_announced_beyond_limit() -> None:
    layout = BlockLayout(100, 1, 1)
    assert blocks_within([(0, 1), (5, 3), (10, 2), (20, 9)], layout, 2, 1000) == ((5, 3), (20, 9))
    assert blocks_within([(0, 1), (5, 3), (10, 2), (20, 9)], layout, 2, 7) == ((5, 3), (20, 4))


def holed(size: int, holes: Sequence[Range]) -> Data:
    """Return data with zeros in these blocks."""
    data = data_of(size)
    content = bytearray(data.content)
    for first, count in holes:
        begin, stop = data.layout.offset(first), min(size, data.layout.offset(first + count))
        content[begin:stop] = bytes(stop - begin)
    return Data(bytes(content), data.layout)


def store_of(engine: str, directory: Path, data: Data, holes: Sequence[Range]) -> BlockStore:
    target = FileTarget(open_directory(directory), directory, "file", data.layout.size, "id")
    store = open_store(engine, data.layout, SUITE, target, holes=holes)
    assert store.engine == engine
    return store


def held(store: BlockStore) -> set[int]:
    return {block for first, count in store.held.ranges() for block in range(first, first + count)}


@by_both
def test_receiver_creates_holes_and_verifies_them_by_digest(engine: str, directory: Path) -> None:
    holes = [(0, 2), (5, 3), (24, 1)]
    data = holed(24 * 40 + 7, holes)
    store = store_of(engine, directory, data, holes)
    assert held(store) == {0, 1, 5, 6, 7, 24}
    assert store.position == 2
    assert store.block(6) == bytes(40) and store.block(24) == bytes(7)
    store.expect(0, data.digests())
    assert store.take_wrong() == []
    for block in range(data.blocks):
        assert store.put(block, data.block(block)) == (block not in {0, 1, 5, 6, 7, 24})
    assert store.complete
    store.commit(data.whole)
    assert (directory / "file").read_bytes() == data.content


@by_both
def test_wrongly_announced_hole_is_requested_and_repaired(engine: str, directory: Path) -> None:
    data = data_of(400)
    store = store_of(engine, directory, data, [(2, 3)])
    assert held(store) == {2, 3, 4}
    store.expect(0, data.digests())
    assert sorted(block for first, count in store.take_wrong() for block in range(first, first + count)) == [2, 3, 4]
    assert held(store) == set()
    for block in range(data.blocks):
        store.put(block, data.block(block))
    store.commit(data.whole)
    assert (directory / "file").read_bytes() == data.content


@by_both
@pytest.mark.parametrize("has_seek_data", [True, False])
def test_remains_in_hole_count_only_if_they_are_zeros(
    engine: str, directory: Path, monkeypatch: pytest.MonkeyPatch, has_seek_data: bool
) -> None:
    """The remains of a killed session, or of another sender's, have data without records."""
    holes = [(1, 5), (7, 3)]
    data = holed(400, holes)
    first = store_of(engine, directory, data, holes)
    assert first.descriptor is not None
    os.pwrite(first.descriptor, b"x" * 40, data.layout.offset(3))
    os.pwrite(first.descriptor, bytes(40), data.layout.offset(4))
    first.put(6, data.block(6))
    first.discard(resumable=True)
    if not has_seek_data:
        monkeypatch.setattr(file_target, "next_data", lambda _descriptor, offset, _size: offset)
    store = store_of(engine, directory, data, holes)
    assert held(store) == {1, 2, 4, 5, 6, 7, 8, 9}
    store.expect(0, data.digests())
    assert store.take_wrong() == []
    for block in (0, 3):
        store.put(block, data.block(block))
    store.commit(data.whole)
    assert (directory / "file").read_bytes() == data.content


@by_both
def test_received_file_uses_no_space_for_holes(engine: str, directory: Path) -> None:
    layout, holes = BlockLayout(100 << 20, 1456), [(1, 1500)]
    target = FileTarget(open_directory(directory), directory, "file", layout.size, "id")
    store = open_store(engine, layout, SUITE, target, holes=holes)
    store.put(0, b"x" * layout.block_size)
    digests = SUITE.block(b"x" * layout.block_size) + SUITE.block(bytes(layout.block_size)) * (layout.blocks - 2)
    digests += SUITE.block(bytes(layout.length(layout.blocks - 1)))
    store.expect(0, digests)
    for block in range(1501, layout.blocks):
        store.put(block, bytes(layout.length(block)))
    store.commit(SUITE.whole(digests))
    status = (directory / "file").stat()
    assert status.st_size == 100 << 20
    assert status.st_blocks * 512 < (layout.blocks - 1500 + 2) * layout.block_size


def test_other_targets_receive_zeros_of_holes() -> None:
    data = holed(400, [(0, 5)])
    for target in (MemoryTarget("m", 1000), InOrder()):
        store = open_store("auto", data.layout, SUITE, target, holes=[(0, 5)])
        assert store.held.held == 0


@by_both
def test_sender_digests_holes_without_reading_them(engine: str, tmp_path: Path) -> None:
    """The file has data in its holes, so the digests show whether the reader read them."""
    data, holes = data_of(10 * 40 + 7), [(0, 1), (3, 4), (10, 1)]
    (tmp_path / "file").write_bytes(data.content)
    expected = holed(10 * 40 + 7, holes)
    with opened_file(tmp_path / "file") as source:
        for max_blocks in (1, 2, 100):
            reader = open_reader(engine, source, data.layout, SUITE, None, holes)
            assert reader.engine == engine
            while reader.digest(max_blocks):
                pass
            assert reader.digested == data.blocks
            assert reader.take_digests() == expected.digests()


@given(
    st.sets(st.integers(0, 30)), st.sets(st.integers(0, 60)), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)))
)
def test_block_map_intersection_and_count_match_sets(one: set[int], other: set[int], ranges: list[Range]) -> None:
    held, more = map_of(one), map_of(other)
    held.intersect(more)
    assert list(numbers_in(held)) == sorted(one & other)
    assert held.held == len(one & other)
    expected = sum(block in other for first, count in ranges for block in range(first, first + count))
    assert count_held(more, ranges) == expected


def map_of(blocks: set[int]) -> BlockMap:
    held = BlockMap()
    for block in blocks:
        held.add(block)
    return held


def numbers_in(held: BlockMap) -> Iterator[int]:
    return (block for first, count in held.ranges() for block in range(first, first + count))
