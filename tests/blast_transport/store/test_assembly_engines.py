"""The compiled assembly, compared with the Python reference step by step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.base.errors import StoreError
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.sealing import Sealer, new_key
from blast_transport.datagrams.intake import AssemblyIntake
from blast_transport.store.blocks import assembly as assembly_module
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.block_assembly import BlockAssembly, Piece
from blast_transport.store.blocks.compiled_assembly import CompiledAssembly
from blast_transport.store.opening import open_assembly
from blast_transport.store.targets.file_target import FileRules
from tests.support.transport.engines import file_store
from tests.support.transport.transport_data import Data, data_of

MAX_BLOCKS = 40
SIZE, COUNT = 10, 4
BLOCK = SIZE * COUNT
SEGMENTS = MAX_BLOCKS * COUNT
MAX_OPEN = 5

segments = st.integers(0, SEGMENTS + COUNT)
arrivals = st.lists(
    st.tuples(
        # Whole blocks, or runs of segments, also across block boundaries.
        st.integers(0, MAX_BLOCKS + 1).map(lambda block: (block * COUNT, COUNT))
        | st.tuples(segments | st.integers((1 << 64) - 5, (1 << 64) - 1), st.integers(1, 10)),
        st.booleans(),
        st.sampled_from([0] * 12 + [-11, -10, -3, -1, 1, 10]),
    ),
    min_size=1,
    max_size=12,
)
"""((first segment, number), whether they are the sender's, number of excess bytes)."""
Arrivals = list[tuple[tuple[int, int], bool, int]]


class TwoAssemblies(RuleBasedStateMachine):
    """A file or a stream at two receivers, one for each engine, that receive the same data."""

    @initialize(size=st.integers(1, BLOCK * MAX_BLOCKS), stream=st.booleans())
    def begin(self, size: int, stream: bool) -> None:
        self.data: Data = data_of(size, SIZE, COUNT, seed=1)
        self.forged: Data = data_of(SEGMENTS * SIZE, SIZE, COUNT, seed=2)
        self.layout = BlockLayout(None, SIZE, COUNT) if stream else self.data.layout
        self.undo = ExitStack()
        patch = self.undo.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(assembly_module, "MAX_OPEN_BYTES", MAX_OPEN * BLOCK)
        self.assemblies = [open_assembly(self._store(engine), None) for engine in (PYTHON, COMPILED)]
        assert [type(one) for one in self.assemblies] == [Assembly, CompiledAssembly]
        self.intakes = [AssemblyIntake(one) for one in self.assemblies]

    def _store(self, engine: str):  # type: ignore[no-untyped-def]
        store = file_store(engine, Path(self.undo.enter_context(tempfile.TemporaryDirectory())), self.layout)
        self.undo.callback(store.discard)
        return store

    def both(self, do: Callable[[BlockAssembly], object]) -> None:
        python, compiled = map(do, self.assemblies)
        assert python == compiled

    def payload(self, first: int, count: int, right: bool, more: int) -> bytes:
        content = self.data.content if right else self.forged.content
        begin = first % (SEGMENTS + COUNT) * SIZE
        whole = content[begin : begin + count * SIZE] or bytes(count * SIZE)
        return whole[: len(whole) + more] if more < 0 else whole + bytes(more)

    def pieces(self, arrivals: Arrivals) -> list[Piece]:
        return [(first, count, self.payload(first, count, *how)) for (first, count), *how in arrivals]  # type: ignore[arg-type]

    @rule(arrivals=arrivals)
    def receive_segments(self, arrivals: Arrivals) -> None:
        self.both(lambda one: one.add_all(self.pieces(arrivals)))

    @rule(arrivals=arrivals, stop=segments)
    def receive_datagrams(self, arrivals: Arrivals, stop: int) -> None:
        for intake in self.intakes:
            intake.stop = stop
            intake.take(self.pieces(arrivals))
        python, compiled = (intake.arrived(0.0) for intake in self.intakes)
        assert python == compiled

    @rule(first=st.integers(0, MAX_BLOCKS), count=st.integers(1, 8))
    def receive_consecutive_blocks(self, first: int, count: int) -> None:
        blocks = range(first, min(first + count, self.data.blocks))
        wire = [(block * COUNT, self.data.layout.segments(block), self.data.block(block)) for block in blocks]
        self.both(lambda one: one.add_all(wire))

    @rule(arrivals=arrivals)
    def receive_repairs(self, arrivals: Arrivals) -> None:
        rows = [(first, payload) for first, _, payload in self.pieces(arrivals) if payload]
        self.both(lambda one: one.repair(rows))

    @rule(block=st.integers(0, MAX_BLOCKS), right=st.booleans())
    def store_block_of_other_transport(self, block: int, right: bool) -> None:
        if block < self.data.blocks:
            length = self.data.layout.length(block)
            self.both(lambda one: one.store.put(block, self.payload(block * COUNT, COUNT, right, 0)[:length]))

    @rule(first=st.integers(0, MAX_BLOCKS), count=st.integers(1, MAX_BLOCKS))
    def receive_digests(self, first: int, count: int) -> None:
        first = min(first, self.known)
        stop = min(self.data.blocks, first + count)
        if first < stop:
            self.known = max(self.known, stop)
            self.both(lambda one: one.store.expect(first, self.data.digests(first, stop)))

    known = 0

    @rule()
    def request_wrong_blocks(self) -> None:
        self.both(lambda one: sorted({b for first, count in one.take_wrong() for b in range(first, first + count)}))

    @rule()
    def settle_size(self) -> None:
        self.both(lambda one: one.settle(len(self.data.content)))

    @rule(count=st.integers(0, 9))
    def refuse_foreign_datagrams(self, count: int) -> None:
        self.both(lambda one: one.refuse(count))

    @rule(first=segments, number=st.integers(0, SEGMENTS))
    def look_up_missing_segments(self, first: int, number: int) -> None:
        self.both(lambda one: one.missing(first, first + number))

    @invariant()
    def engines_agree(self) -> None:
        if hasattr(self, "assemblies"):
            self.both(self._seen)

    def _seen(self, one: BlockAssembly) -> object:
        store = one.store
        state = (list(store.held.ranges()), store.position, store.corrupt, store.reach, store.complete)
        assert store.descriptor is not None
        file = os.pread(store.descriptor, 2 * SEGMENTS * SIZE, 0)
        return one.duplicates, one.refused, one.missing(0, SEGMENTS + 9), state, store.layout, file

    def teardown(self) -> None:
        """Deliver every block, and check that the file is the sender's."""
        if not hasattr(self, "undo"):
            return
        with self.undo:
            self.settle_size()
            self.both(lambda one: one.store.expect(0, self.data.digests()))
            self.both(self._repair_until_complete)
            self.both(self._seen)

    def _repair_until_complete(self, one: BlockAssembly) -> None:
        """Repair missing segments until all is complete; evicted blocks and wrong ones are missing again."""
        for _ in range(MAX_BLOCKS):
            one.take_wrong()
            for first, count in one.missing(0, SEGMENTS):
                one.repair([(first, self.data.content[first * SIZE : (first + count) * SIZE])])
            if one.store.complete:
                return
        raise AssertionError("some segments cannot be repaired")


TwoAssemblies.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@pytest.mark.compiled
class TestTwoAssemblies(TwoAssemblies.TestCase):
    """The state machine as a test case."""


@pytest.mark.compiled
def test_sealed_blocks_are_assembled_by_python(tmp_path: Path) -> None:
    store = file_store(COMPILED, tmp_path, BlockLayout(100, 20, 4, 16))
    assert isinstance(open_assembly(store, Sealer(new_key())), Assembly)
    store.discard()


@pytest.mark.compiled
def test_stream_beyond_size_limit_raises_store_error(tmp_path: Path) -> None:
    store = file_store(COMPILED, tmp_path, BlockLayout(None, 10, 4), FileRules(max_bytes=70))
    assembly = open_assembly(store, None)
    assert isinstance(assembly, CompiledAssembly) and assembly.add_all([(0, 4, bytes(40))]) == 4
    with pytest.raises(StoreError, match="more bytes came than the 70"):
        assembly.add_all([(4, 4, bytes(40))])
    store.discard()
