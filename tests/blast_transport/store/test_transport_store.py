"""The store, compared with the sent data for any input, order and thread."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.errors import ForgottenError, RemoteProtocolError
from blast_transport.blocks.digests import DIGEST_BYTES
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.memory_target import MemoryTarget
from tests.support.transport.transport_data import SUITE, Data, InOrder, data_of

MAX_BYTES = 1 << 20


def asked_again(store: SessionStore) -> list[int]:
    return [block for first, count in store.take_wrong() for block in range(first, first + count)]


def wrong(block: bytes) -> bytes:
    return bytes([block[0] ^ 1]) + block[1:]


arrivals = st.lists(st.tuples(st.sampled_from(["good", "bad", "digests"]), st.integers(0, 30)), max_size=60)
datas = st.builds(data_of, st.integers(1, 1200), st.integers(3, 12), st.integers(1, 4))


rows = st.lists(st.tuples(st.integers(0, 30), st.lists(st.booleans(), min_size=1, max_size=9)), max_size=20)


@given(datas, rows, st.integers(0, 30), st.booleans())
def test_batch_of_blocks_equals_single_blocks(
    data: Data, rows: list[tuple[int, list[bool]]], known: int, in_order: bool
) -> None:
    targets = [InOrder() if in_order else MemoryTarget("m", MAX_BYTES) for _ in range(2)]
    together, alone = (SessionStore(data.layout, SUITE, target) for target in targets)
    for store in (together, alone):
        store.expect(0, data.digests(0, min(known, data.blocks)))
    for first, goods in rows:
        blocks = range(first % data.blocks, min(first % data.blocks + len(goods), data.blocks))
        row = [
            data.block(block) if good else wrong(data.block(block)) for block, good in zip(blocks, goods, strict=False)
        ]
        taken = together.put_all(blocks.start, row)
        assert taken == sum([alone.put(block, piece) for block, piece in zip(blocks, row, strict=True)])
        assert asked_again(together) == asked_again(alone)
    assert list(together.held.ranges()) == list(alone.held.ranges())
    assert (together.position, together.corrupt) == (alone.position, alone.corrupt)
    assert targets[0].data == targets[1].data


def test_short_block_of_stream_does_not_displace_later_blocks() -> None:
    """It may be the last block until its digest is known; a forger may send further blocks."""
    data, target = data_of(120), MemoryTarget("m", MAX_BYTES)
    store = SessionStore(BlockLayout(None, 10, 4), SUITE, target)
    assert store.put_all(0, [data.block(0)[:31], data.block(1), data.block(2)]) == 3
    store.expect(0, data.digests())
    assert asked_again(store) == [0]
    assert store.put(0, data.block(0))
    store.finish_size(120)
    store.commit(data.whole)
    assert target.data == data.content


@given(datas, arrivals, st.booleans())
def test_store_holds_only_verified_blocks(data: Data, steps: list[tuple[str, int]], in_order: bool) -> None:
    """Once the digests are known, held blocks are correct, and wrong blocks were requested again."""
    target = InOrder() if in_order else MemoryTarget("m", MAX_BYTES)
    store = SessionStore(data.layout, SUITE, target)
    known, again = 0, set[int]()
    for action, number in steps:
        block = number % data.blocks
        if action == "digests":
            stop = min(data.blocks, known + number % 5 + 1)
            store.expect(known, data.digests(known, stop))
            known = stop
        else:
            good = data.block(block)
            store.put(block, good if action == "good" else wrong(good))
        again |= set(asked_again(store))
        assert store.position == store.held.first_missing()
        for first, count in store.held.ranges():
            for held in range(first, min(first + count, known)):
                begin = data.layout.offset(held)
                assert target.data[begin : begin + data.layout.length(held)] == data.block(held)
                assert store.has(held)
        assert not store.complete or target.data == data.content
    store.expect(known, data.digests(known)) if known < data.blocks else None
    for block in range(data.blocks):
        store.put(block, data.block(block))
    assert store.complete and target.data == data.content
    assert len(again) <= store.corrupt
    store.commit(data.whole)


@given(datas, st.permutations(range(20)), st.integers(0, 20))
def test_in_order_target_receives_only_verified_blocks(data: Data, order: list[int], known: int) -> None:
    target, known = InOrder(), min(known, data.blocks)
    store = SessionStore(data.layout, SUITE, target)
    store.expect(0, data.digests(0, known)) if known else None
    put = set[int]()
    for block in [number for number in order if number < data.blocks]:
        store.put(block, data.block(block))
        put.add(block)
        ready = next(number for number in range(data.blocks + 1) if number not in put)
        assert store.position == min(ready, known)
        assert target.data == data.content[: data.layout.offset(min(ready, known))]
        assert sorted(store.waiting()) == sorted(number for number in put if number >= store.position)
        assert store.has(block)
    store.expect(known, data.digests(known)) if known < data.blocks else None
    assert not store.waiting() or store.position < data.blocks


def test_memory_of_waiting_blocks_is_bounded() -> None:
    layout = BlockLayout(1 << 40, 1 << 12, 16)
    store = SessionStore(layout, SUITE, InOrder())
    block = bytes(layout.block_size)
    taken = [number for number in range(0, 20_000, 7) if store.put(number, block)]
    assert len(taken) * layout.block_size <= 64 << 20
    assert max(taken) < store.reach <= 1024


def test_implausible_block_of_stream_is_rejected() -> None:
    layout = BlockLayout(None, 1 << 12, 16)
    target = MemoryTarget("m", 1 << 50)
    store = SessionStore(layout, SUITE, target)
    assert not store.put(layout.blocks - 1, bytes(layout.block_size))
    assert store.put(10, bytes(layout.block_size))
    assert not store.held.held > 1 and len(target.data) < 1 << 20


@given(datas, st.lists(st.integers(0, 40), max_size=10))
def test_end_of_stream_drops_forged_blocks_behind_it(data: Data, forged: list[int]) -> None:
    """A forged block behind the end must not stand for one that is missing: that would be a file with a hole."""
    layout = BlockLayout(None, data.layout.segment_size, data.layout.block_segments)
    store = SessionStore(layout, SUITE, MemoryTarget("m", MAX_BYTES))
    for block in forged:
        store.put(block, bytes(layout.block_size))
    for block in range(1, data.blocks):
        store.put(block, data.block(block))
    store.expect(0, data.digests())
    store.finish_size(len(data.content))
    assert not store.complete
    assert store.position <= data.blocks
    for block in range(data.blocks):
        store.put(block, data.block(block))
    assert store.complete
    store.commit(data.whole)


@pytest.mark.parametrize(("first", "count"), [(1, 1), (5, 1), (0, 6), (1 << 26, 1)])
def test_digests_out_of_order_or_range_are_rejected(first: int, count: int) -> None:
    store = SessionStore(data_of(200).layout, SUITE, MemoryTarget("m", MAX_BYTES))
    with pytest.raises(RemoteProtocolError):
        store.expect(first, bytes(DIGEST_BYTES * count))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_several_transports_fill_one_store_concurrently(seed: int, in_order: bool) -> None:
    """Threads write and read, with duplicate and wrong blocks."""
    data = data_of(3000, seed=seed)
    target = InOrder() if in_order else MemoryTarget("m", MAX_BYTES)
    store = SessionStore(data.layout, SUITE, target)
    store.expect(0, data.digests(0, 30))

    def transport(number: int) -> None:
        chance = random.Random(seed + number)
        order = chance.sample(range(data.blocks), data.blocks)
        for block in order:
            store.put(block, wrong(data.block(block)) if chance.random() < 0.1 else data.block(block))
            if number == 0 and block == order[20]:
                store.expect(30, data.digests(30))
            view = memoryview(bytearray(50))
            begin = chance.randrange(len(data.content))
            try:
                count = store.read(begin, view)
            except ForgottenError as error:
                assert begin < error.first_held
                continue
            # Data of blocks that are not verified yet may be wrong.
            assert begin + count > 30 * data.layout.block_size or view[:count] == data.content[begin : begin + count]

    with ThreadPoolExecutor() as pool:
        for running in [pool.submit(transport, number) for number in range(3)]:
            running.result()
    for block in range(data.blocks):
        store.put(block, data.block(block))
    assert store.complete and target.data == data.content
