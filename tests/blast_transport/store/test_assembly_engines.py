"""The compiled assembly beside the one in Python, which is the reference: the same steps, and nothing differs."""

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
from blast_transport.store.blocks import assembly as assembly_module
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.block_assembly import BlockAssembly, Piece
from blast_transport.store.blocks.compiled_assembly import CompiledAssembly
from blast_transport.store.opening import open_assembly
from blast_transport.store.targets.file_target import FileRules
from blast_transport.transports.optical.light_intake import LightIntake
from tests.support.engines import file_store
from tests.support.transport_data import Data, data_of

MAX_BLOCKS = 40
SIZE, COUNT = 10, 4
BLOCK = SIZE * COUNT
SEGMENTS = MAX_BLOCKS * COUNT
MAX_OPEN = 5

segments = st.integers(0, SEGMENTS + COUNT)
arrivals = st.lists(
    st.tuples(
        # Blocks come whole, or runs of segments do, also over the borders of blocks.
        st.integers(0, MAX_BLOCKS + 1).map(lambda block: (block * COUNT, COUNT))
        | st.tuples(segments | st.integers((1 << 64) - 5, (1 << 64) - 1), st.integers(1, 10)),
        st.booleans(),
        st.sampled_from([0] * 12 + [-11, -10, -3, -1, 1, 10]),
    ),
    min_size=1,
    max_size=12,
)
"""((first segment, number), whether they are the sender's, bytes that there are more than there should be)."""
Arrivals = list[tuple[tuple[int, int], bool, int]]


class TwoAssemblies(RuleBasedStateMachine):
    """A file or a stream at two receivers, one by each engine, to which the same comes."""

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
        self.intakes = [LightIntake(one) for one in self.assemblies]

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
    def segments_come(self, arrivals: Arrivals) -> None:
        self.both(lambda one: one.add_all(self.pieces(arrivals)))

    @rule(arrivals=arrivals, stop=segments)
    def light_comes(self, arrivals: Arrivals, stop: int) -> None:
        for intake in self.intakes:
            intake.stop = stop
            intake.take(self.pieces(arrivals))
        python, compiled = (intake.arrived(0.0) for intake in self.intakes)
        assert python == compiled

    @rule(first=st.integers(0, MAX_BLOCKS), count=st.integers(1, 8))
    def blocks_come_one_after_the_other(self, first: int, count: int) -> None:
        blocks = range(first, min(first + count, self.data.blocks))
        wire = [(block * COUNT, self.data.layout.segments(block), self.data.block(block)) for block in blocks]
        self.both(lambda one: one.add_all(wire))

    @rule(arrivals=arrivals)
    def repairs_come(self, arrivals: Arrivals) -> None:
        rows = [(first, payload) for first, _, payload in self.pieces(arrivals) if payload]
        self.both(lambda one: one.repair(rows))

    @rule(block=st.integers(0, MAX_BLOCKS), right=st.booleans())
    def another_transport_brings_a_block(self, block: int, right: bool) -> None:
        if block < self.data.blocks:
            length = self.data.layout.length(block)
            self.both(lambda one: one.store.put(block, self.payload(block * COUNT, COUNT, right, 0)[:length]))

    @rule(first=st.integers(0, MAX_BLOCKS), count=st.integers(1, MAX_BLOCKS))
    def digests_come(self, first: int, count: int) -> None:
        first = min(first, self.told)
        stop = min(self.data.blocks, first + count)
        if first < stop:
            self.told = max(self.told, stop)
            self.both(lambda one: one.store.expect(first, self.data.digests(first, stop)))

    told = 0

    @rule()
    def what_was_wrong_is_asked_for(self) -> None:
        self.both(lambda one: sorted({b for first, count in one.take_wrong() for b in range(first, first + count)}))

    @rule()
    def all_was_sent(self) -> None:
        self.both(lambda one: one.settle(len(self.data.content)))

    @rule(count=st.integers(0, 9))
    def others_are_heard(self, count: int) -> None:
        self.both(lambda one: one.refuse(count))

    @rule(first=segments, number=st.integers(0, SEGMENTS))
    def somebody_looks_for_what_is_missing(self, first: int, number: int) -> None:
        self.both(lambda one: one.missing(first, first + number))

    @invariant()
    def nothing_differs(self) -> None:
        if hasattr(self, "assemblies"):
            self.both(self._seen)

    def _seen(self, one: BlockAssembly) -> object:
        store = one.store
        books = (list(store.held.ranges()), store.position, store.corrupt, store.reach, store.complete)
        assert store.descriptor is not None
        file = os.pread(store.descriptor, 2 * SEGMENTS * SIZE, 0)
        return one.duplicates, one.refused, one.missing(0, SEGMENTS + 9), books, store.layout, file

    def teardown(self) -> None:
        """In the end every block is brought, and the file is the sender's."""
        if not hasattr(self, "undo"):
            return
        with self.undo:
            self.all_was_sent()
            self.both(lambda one: one.store.expect(0, self.data.digests()))
            self.both(self._ask_until_it_is_complete)
            self.both(self._seen)

    def _ask_until_it_is_complete(self, one: BlockAssembly) -> None:
        """Repair missing segments until all is complete; evicted blocks and wrong ones are missing again."""
        for _ in range(MAX_BLOCKS):
            one.take_wrong()
            for first, count in one.missing(0, SEGMENTS):
                one.repair([(first, self.data.content[first * SIZE : (first + count) * SIZE])])
            if one.store.complete:
                return
        raise AssertionError("some of it cannot be had")


TwoAssemblies.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@pytest.mark.compiled
class TestTwoAssemblies(TwoAssemblies.TestCase):
    """Hypothesis runs it."""


@pytest.mark.compiled
def test_what_is_sealed_is_put_together_by_python(tmp_path: Path) -> None:
    store = file_store(COMPILED, tmp_path, BlockLayout(100, 20, 4, 16))
    assert isinstance(open_assembly(store, Sealer(new_key())), Assembly)
    store.discard()


@pytest.mark.compiled
def test_more_than_the_host_takes_is_an_error_of_the_store(tmp_path: Path) -> None:
    store = file_store(COMPILED, tmp_path, BlockLayout(None, 10, 4), FileRules(max_bytes=70))
    assembly = open_assembly(store, None)
    assert isinstance(assembly, CompiledAssembly) and assembly.add_all([(0, 4, bytes(40))]) == 4
    with pytest.raises(StoreError, match="more bytes came than the 70"):
        assembly.add_all([(4, 4, bytes(40))])
    store.discard()
