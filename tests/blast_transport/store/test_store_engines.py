"""The compiled store, compared with the Python reference step by step."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.base.errors import RemoteProtocolError, StoreError
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.targets.file_target import FileRules
from tests.support.transport.engines import file_store
from tests.support.transport.transport_data import SUITE, Data, data_of

MAX_BLOCKS = 200
BLOCK = 40
numbers = st.integers(0, MAX_BLOCKS)


class TwoStores(RuleBasedStateMachine):
    """A file or a stream at two receivers, one for each engine, with the same steps."""

    @initialize(size=st.integers(1, BLOCK * MAX_BLOCKS), stream=st.booleans(), limit=st.none() | st.integers(0, 9000))
    def begin(self, size: int, stream: bool, limit: int | None) -> None:
        self.data: Data = data_of(size, seed=1)
        self.forged: Data = data_of(size, seed=2)
        self.layout = BlockLayout(None, 10, 4) if stream else self.data.layout
        self.rules = FileRules(None if limit is None else max(limit, 0 if stream else size))
        self.undo = ExitStack()
        self.directories = [Path(self.undo.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        self.open()

    def open(self) -> None:
        engines = zip((PYTHON, COMPILED), self.directories, strict=True)
        self.stores = [file_store(engine, directory, self.layout, self.rules) for engine, directory in engines]
        self.known = 0
        self.claimed: list[tuple[int, int]] = []

    def both(self, do) -> object:  # type: ignore[no-untyped-def]
        """Apply a step to both stores, and check that the result or the error is the same."""
        outcomes = [self._outcome(do, store, place) for store, place in zip(self.stores, self.directories, strict=True)]
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    @staticmethod
    def _outcome(do, store: BlockStore, directory: Path) -> object:  # type: ignore[no-untyped-def]
        try:
            return do(store)
        except (StoreError, RemoteProtocolError) as error:
            return type(error), str(error).replace(str(directory), "DIRECTORY")

    def piece(self, block: int, right: bool) -> bytes:
        return (self.data if right else self.forged).block(block)

    @rule(first=numbers, rights=st.lists(st.booleans(), min_size=1, max_size=40))
    def receive_optical_blocks(self, first: int, rights: list[bool]) -> None:
        first %= self.data.blocks
        row = [self.piece(block, right) for block, right in enumerate(rights, first) if block < self.data.blocks]
        self.both(lambda store: store.put_all(first, row))

    @rule(first=numbers, rights=st.lists(st.booleans(), min_size=1, max_size=40))
    def receive_pipeline_row(self, first: int, rights: list[bool]) -> None:
        first %= self.data.blocks
        row = [self.piece(block, right) for block, right in enumerate(rights, first) if block < self.data.blocks]
        self.both(lambda store: store.put_row(first, memoryview(b"".join(row))))

    @rule(block=st.integers(0, 1 << 27))
    def receive_forged_block(self, block: int) -> None:
        if block > 1 << 20 or self.layout.known:
            self.both(lambda store: store.put(block + self.data.blocks, bytes(BLOCK)))

    @rule(first=numbers, count=numbers)
    def receive_digests(self, first: int, count: int) -> None:
        stop = min(self.data.blocks, first + count)
        digests = self.data.digests(first, max(first, stop))
        if self.both(lambda store: store.expect(first, digests)) is None:
            self.known = max(self.known, stop)

    @rule(first=numbers, count=numbers)
    def claim_blocks(self, first: int, count: int) -> None:
        claimed = self.both(lambda store: store.claim(first, first + count))
        self.claimed += claimed if isinstance(claimed, list) else []

    @rule(right=st.booleans(), gives_up=st.booleans())
    def end_claim(self, right: bool, gives_up: bool) -> None:
        if not self.claimed:
            return
        first, count = self.claimed.pop()
        blocks = range(first, min(first + count, self.data.blocks))
        if gives_up or not blocks:
            self.both(lambda store: store.release(first, first + count))
            return
        content = b"".join(self.piece(block, right) for block in blocks)
        digests = b"".join(SUITE.block(self.piece(block, right)) for block in blocks)
        for store in self.stores:
            assert store.descriptor is not None
            os.pwrite(store.descriptor, content, first * BLOCK)
        self.both(lambda store: store.written(first, digests))
        self.both(lambda store: store.release(first, first + count))

    @rule(block=numbers)
    def refuse_block(self, block: int) -> None:
        self.both(lambda store: store.refuse(block % self.data.blocks))

    @rule()
    def request_wrong_blocks(self) -> None:
        self.both(lambda store: sorted({b for first, count in store.take_wrong() for b in range(first, first + count)}))

    @rule()
    def end_stream(self) -> None:
        if not self.layout.known and self.known <= self.data.blocks:
            self.layout = self.data.layout
            self.both(lambda store: store.finish_size(len(self.data.content)))

    @rule(offset=st.integers(0, BLOCK * MAX_BLOCKS), length=st.integers(0, 300), block=numbers)
    def read_blocks(self, offset: int, length: int, block: int) -> None:
        def read(store: BlockStore) -> object:
            view = memoryview(bytearray(length))
            count = store.read(offset, view)
            return bytes(view[:count]), store.block(block)

        self.both(read)

    @rule()
    def resume_in_other_session(self) -> None:
        if self.layout.known and not self.has_room:
            return
        for store in self.stores:
            store.discard(resumable=True)
        self.open()

    @property
    def has_room(self) -> bool:
        return self.rules.max_bytes is None or self.rules.max_bytes >= len(self.data.content)

    @invariant()
    def engines_agree(self) -> None:
        if not hasattr(self, "stores"):
            return
        python, compiled = (
            (
                list(store.held.ranges()),
                list(store.held.missing(3, MAX_BLOCKS + 5)),
                store.held.held,
                store.held.first_missing(7),
                [block for block in range(MAX_BLOCKS) if store.has(block) != (block in store.held)],
                store.position,
                store.corrupt,
                store.reach,
                store.complete,
                store.waiting(),
                store.layout,
            )
            for store in self.stores
        )
        assert python == compiled
        files = [os.pread(store.descriptor or 0, BLOCK * (MAX_BLOCKS + 2), 0) for store in self.stores]
        assert files[0] == files[1]

    def teardown(self) -> None:
        """Deliver every block; check that both files are the sender's, or that both stores fail alike."""
        if not hasattr(self, "undo"):
            return
        with self.undo:
            for first, count in self.claimed:
                self.both(lambda store, first=first, count=count: store.release(first, first + count))
            self.end_stream()
            self.both(lambda store: store.expect(0, self.data.digests()))
            self.both(lambda store: [store.put(block, self.data.block(block)) for block in range(self.data.blocks)])
            whole = self.both(lambda store: store.complete)
            if whole is True:
                self.both(lambda store: store.commit(self.data.whole))
                for directory in self.directories:
                    assert (directory / "file").read_bytes() == self.data.content
                    assert [entry.name for entry in directory.iterdir()] == ["file"]
            else:
                assert not self.has_room
            for store in self.stores:
                store.discard()
            assert not [entry for entry in self.directories[0].iterdir() if entry.name != "file"]


TwoStores.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.compiled
class TestTwoStores(TwoStores.TestCase):
    """The state machine as a test case."""
