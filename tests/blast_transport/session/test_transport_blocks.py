"""Layout, block maps, digests and retransmissions, compared with simple models."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from blast_transport.base.errors import BrokenDigestError, RemoteProtocolError, WrongInputError
from blast_transport.blocks.block_map import BlockMap
from blast_transport.blocks.digests import DIGEST_BYTES, SUITES, DigestTable, suite_named
from blast_transport.blocks.layout import MAX_BLOCKS, BlockLayout
from blast_transport.blocks.masks import mask_of, runs
from blast_transport.session.peers.peer import Peer
from blast_transport.session.peers.repairs import Repairs
from blast_transport.session.peers.retransmit_queue import WHOLE, RetransmitQueue

MAX_NUMBER = 40
numbers = st.integers(0, MAX_NUMBER)
layouts = st.builds(
    BlockLayout,
    st.integers(0, 5000),
    segment_size=st.integers(1, 60),
    block_segments=st.integers(1, 8),
    overhead=st.just(0),
)


def as_set(ranges: object) -> list[int]:
    return [number for first, count in ranges for number in range(first, first + count)]  # type: ignore[attr-defined]


@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "range", "cut"]), numbers, numbers)), numbers, numbers)
def test_block_map_matches_set(steps: list[tuple[str, int, int]], start: int, stop: int) -> None:
    held, model = BlockMap(), set[int]()
    for action, first, count in steps:
        match action:
            case "add":
                assert held.add(first) == (first not in model)
                model.add(first)
            case "discard":
                held.discard(first)
                model.discard(first)
            case "cut":
                held.cut(first)
                model = {number for number in model if number < first}
            case _:
                held.add_range(first, count)
                model |= set(range(first, first + count))
        assert held.held == len(model)
    assert as_set(held.ranges()) == sorted(model)
    assert held.first() == min(model, default=None)
    assert as_set(held.missing(start, stop)) == [number for number in range(start, stop) if number not in model]
    assert held.first_missing(start) == next(number for number in range(start, 3 * MAX_NUMBER) if number not in model)
    assert [number for number in range(3 * MAX_NUMBER) if number in held] == sorted(model)


@given(st.sets(numbers), numbers, numbers)
def test_missing_ranges_are_merged(held: set[int], start: int, stop: int) -> None:
    blocks = BlockMap()
    for block in held:
        blocks.add(block)
    ranges = list(blocks.missing(start, stop))
    assert all(count > 0 for _, count in ranges)
    assert all(one[0] + one[1] < other[0] for one, other in itertools.pairwise(ranges))


def test_block_map_of_endless_stream_needs_little_memory() -> None:
    held = BlockMap()
    held.add(3)
    assert list(held.missing(0, MAX_BLOCKS)) == [(0, 3), (4, MAX_BLOCKS - 4)]
    assert len(held._marks) < 1 << 14


@given(layouts)
def test_blocks_and_segments_partition_data(layout: BlockLayout) -> None:
    assert layout.size is not None
    lengths = [layout.length(block) for block in range(layout.blocks)]
    assert sum(lengths) == layout.size
    assert all(length == layout.block_size for length in lengths[:-1])
    assert all(0 < length <= layout.block_size for length in lengths)
    assert [layout.offset(block) for block in range(layout.blocks)] == [
        sum(lengths[:block]) for block in range(layout.blocks)
    ]
    for block in range(layout.blocks):
        segments = layout.segments(block)
        assert (segments - 1) * layout.segment_size < layout.wire_length(block) <= segments * layout.segment_size
        assert 0 < segments <= layout.block_segments
        assert layout.all_segments(block) == 2**segments - 1


@given(st.integers(0, 5000), st.integers(17, 60), st.integers(1, 8))
def test_sealed_blocks_fill_whole_datagrams(size: int, segment_size: int, block_segments: int) -> None:
    layout = BlockLayout(size, segment_size, block_segments, overhead=16)
    for block in range(layout.blocks - 1):
        assert layout.wire_length(block) == segment_size * block_segments
    assert sum(layout.wire_length(block) - 16 for block in range(layout.blocks)) == size


@given(layouts)
def test_ended_stream_has_layout_of_file(layout: BlockLayout) -> None:
    assert layout.size is not None
    stream = BlockLayout(None, layout.segment_size, layout.block_segments)
    assert not stream.known and stream.blocks == MAX_BLOCKS
    assert stream.length(7) == layout.block_size
    assert stream.closed(layout.size) == layout


@pytest.mark.parametrize(
    ("size", "segment", "segments", "overhead"),
    [(0, 0, 1, 0), (0, 1, 0, 0), (0, 65492, 1, 0), (0, 100, 65, 0), (-1, 1, 1, 0), (0, 4, 4, 16), (1 << 60, 1, 1, 0)],
)
def test_invalid_block_layout_is_rejected(size: int, segment: int, segments: int, overhead: int) -> None:
    with pytest.raises(RemoteProtocolError):
        BlockLayout(size, segment, segments, overhead)


digests = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)


@given(st.lists(st.tuples(numbers, st.lists(digests, min_size=1, max_size=5)), max_size=12), numbers)
def test_digest_table_matches_dictionary(rows: list[tuple[int, list[bytes]]], blocks: int) -> None:
    table, model = DigestTable(), dict[int, bytes]()
    for first, row in rows:
        table.set_all(first, b"".join(row))
        model |= {first + index: digest for index, digest in enumerate(row)}
    assert {block: table[block] for block in range(2 * MAX_NUMBER) if block in table} == model
    assert table.complete(blocks) == all(block in model for block in range(blocks))
    with pytest.raises(KeyError):
        table[3 * MAX_NUMBER]
    if table.complete(blocks):
        assert table.slice(0, blocks) == b"".join(model[block] for block in range(blocks))


table_rows = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=30)


@given(table_rows, table_rows, st.integers(0, 20), st.integers(0, 20))
def test_differing_compares_only_digests_known_to_both(
    one: list[tuple[int, bool]], other: list[tuple[int, bool]], first: int, count: int
) -> None:
    tables, models = (DigestTable(), DigestTable()), (dict[int, bytes](), dict[int, bytes]())
    for table, model, rows in zip(tables, models, (one, other), strict=True):
        for block, kind in rows:
            model[block] = bytes([kind]) * DIGEST_BYTES
            table.set(block, model[block])
    both = [block for block in range(first, first + count) if block in models[0] and block in models[1]]
    expected = [block for block in both if models[0][block] != models[1][block]]
    assert tables[0].differing(tables[1], first, first + count) == expected


@given(st.sampled_from(sorted(SUITES)), st.binary(), st.binary())
def test_digests_distinguish_blocks_and_have_fixed_length(name: str, one: bytes, other: bytes) -> None:
    assume(one != other)
    suite = suite_named(name)
    assert suite.block(one) == suite.block(memoryview(bytearray(one))) != suite.block(other)
    assert len(suite.block(one)) == DIGEST_BYTES
    assert len(suite.whole(one)) == 32


def test_unknown_digest_suite_is_named() -> None:
    with pytest.raises(WrongInputError, match="md5"):
        suite_named("md5")


def test_forgeable_digest_suite_is_rejected() -> None:
    with pytest.raises(BrokenDigestError, match="xxh3 can be forged"):
        suite_named("xxh3")


@given(st.integers(0, 2**70))
def test_runs_cover_bits_of_mask(mask: int) -> None:
    found = list(runs(mask))
    assert sum(((1 << count) - 1) << first for first, count in found) == mask
    assert all(one[0] + one[1] < other[0] for one, other in itertools.pairwise(found))


steps = st.tuples(st.sampled_from(["add", "whole", "take", "cut"]), st.integers(0, 5), st.integers(1, 255))


@given(st.lists(steps))
def test_retransmit_queue_returns_each_segment_once(steps: list[tuple[str, int, int]]) -> None:
    queue, model, left = RetransmitQueue(), dict[int, int](), dict[int, int]()
    for action, block, mask in steps:
        match action:
            case "add":
                queue.add(block, mask)
                model[block] = model.get(block, 0) | mask
            case "whole":
                queue.add_whole([(block, 2), (block + 1, 3)])
                model |= dict.fromkeys(range(block, block + 4), WHOLE)
            case "take":
                assert queue.take(block, mask) == model.get(block, 0) & mask
                model[block] = model.get(block, 0) & ~mask
            case _:
                queue.cut(block)
                model = {known: bits for known, bits in model.items() if known < block}
        left = {known: bits for known, bits in model.items() if bits}
        assert {known: queue.mask(known) for known in range(10) if queue.mask(known)} == left
        assert bool(queue) == bool(left) and len(left) <= len(queue) <= 2 * len(left)
    while (due := queue.first()) is not None:
        assert queue.take_all(due) == left.pop(due)
    assert not queue and not left


@given(st.integers(0, 200), st.integers(1, 200), st.integers(1, 8))
def test_requested_segments_are_queued_across_blocks(first: int, count: int, block_segments: int) -> None:
    peer = Peer(0.0)
    for _ in range(2):
        Repairs([peer]).ask(peer, first, first + count, block_segments)
        found = [
            block * block_segments + index
            for block in range(401)
            for index in range(block_segments)
            if peer.retransmits.mask(block) & mask_of(index, 1)
        ]
        assert found == list(range(first, first + count))
