"""A held block is never written again, for any order of correct and forged data of any transports."""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.transports.pipeline.connections.file_pump import FileIntake
from tests.support.transport.engines import BOTH, file_store
from tests.support.transport.transport_data import Data, data_of

SEED, FORGERS_SEED = 1, 2
MAX_BLOCKS = 40


class Phase:
    """A pipeline phase at one node: bytes from `position` on, of which some may be forged."""

    def __init__(self, store: BlockStore, position: int, undo: ExitStack) -> None:
        self.intake = FileIntake(store, position, lambda: None)
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            undo.callback(end.close)
            end.setblocking(False)

    def take(self, data: bytes) -> None:
        while data:
            sent = self._theirs.send(data)
            taken = 0
            while taken < sent:
                taken += self.intake.take(self._ours, sent - taken)
            data = data[sent:]


class HeldBlocks(RuleBasedStateMachine):
    """One file at one receiver. `seen` is each held block as it was on disk when it was first seen held."""

    engine = PYTHON

    @initialize(size=st.integers(1, 40 * MAX_BLOCKS))
    def begin(self, size: int) -> None:
        self.data: Data = data_of(size, seed=SEED)
        self.forged: Data = data_of(size, seed=FORGERS_SEED)
        self.undo = ExitStack()
        self.directory = Path(self.undo.enter_context(tempfile.TemporaryDirectory()))
        self.open()

    def open(self) -> None:
        self.store = file_store(self.engine, self.directory, self.data.layout)
        self.phases: list[Phase] = []
        self.seen: dict[int, bytes] = {}
        self.known = 0

    @rule(number=st.integers(0, MAX_BLOCKS), right=st.booleans())
    def receive_block(self, number: int, right: bool) -> None:
        block = number % self.data.blocks
        self.store.put(block, (self.data if right else self.forged).block(block))

    @rule(count=st.integers(1, MAX_BLOCKS))
    def receive_digests(self, count: int) -> None:
        stop = min(self.data.blocks, self.known + count)
        if stop > self.known:
            self.store.expect(self.known, self.data.digests(self.known, stop))
            self.known = stop

    @rule(number=st.integers(0, MAX_BLOCKS))
    def begin_phase(self, number: int) -> None:
        """Begin a phase; the previous one ends where it is, in the middle of a block or not."""
        self.phases.append(Phase(self.store, self.data.layout.offset(number % self.data.blocks), self.undo))

    @precondition(lambda self: self.phases)
    @rule(which=st.integers(0, 3), length=st.integers(1, 300), right=st.booleans(), settles=st.booleans())
    def receive_in_phase(self, which: int, length: int, right: bool, settles: bool) -> None:
        phase = self.phases[which % len(self.phases)]
        position = phase.intake.position
        phase.take((self.data if right else self.forged).content[position : position + length])
        if settles:
            phase.intake.settle()

    @rule()
    def resume_in_other_session(self) -> None:
        self.store.discard(resumable=True)
        self.open()

    @invariant()
    def held_blocks_stay_unchanged(self) -> None:
        held = {block for first, count in self.store.held.ranges() for block in range(first, first + count)}
        self.seen = {block: self.seen.get(block) or self.on_disk(block) for block in held}
        for block, bytes_then in self.seen.items():
            assert self.on_disk(block) == bytes_then
            assert block >= self.known or bytes_then == self.data.block(block)

    def on_disk(self, block: int) -> bytes:
        assert self.store.descriptor is not None
        return os.pread(self.store.descriptor, self.data.layout.length(block), self.data.layout.offset(block))

    def teardown(self) -> None:
        """Repair all missing blocks, and check that the file is the sender's."""
        if not hasattr(self, "undo"):
            return
        with self.undo:
            if self.known < self.data.blocks:
                self.store.expect(self.known, self.data.digests(self.known))
            for block in range(self.data.blocks):
                self.store.put(block, self.data.block(block))
            assert self.store.complete
            self.store.commit(self.data.whole)
            assert (self.directory / "file").read_bytes() == self.data.content


HeldBlocks.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestHeldBlocks = HeldBlocks.TestCase


class HeldByCompiled(HeldBlocks):
    """The state machine for the compiled engine."""

    engine = COMPILED


HeldByCompiled.TestCase.settings = HeldBlocks.TestCase.settings


@pytest.mark.compiled
class TestHeldByCompiled(HeldByCompiled.TestCase):
    """The state machine as a test case."""


@pytest.mark.parametrize("engine", BOTH)
@given(st.integers(1, 15), st.integers(0, 38))
def test_phase_that_ends_within_held_block_does_not_change_it(engine: str, blocks: int, rest: int) -> None:
    data, forged = data_of(640, seed=SEED), data_of(640, seed=FORGERS_SEED)
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        store = file_store(engine, directory, data.layout)
        store.expect(0, data.digests())
        for block in range(1, data.blocks):
            store.put(block, data.block(block))
        phase = Phase(store, 0, undo)
        phase.take(forged.content[: blocks * 40 + rest])
        phase.intake.settle()
        store.put(0, data.block(0))
        assert store.complete
        store.commit(data.whole)
        assert (directory / "file").read_bytes() == data.content
