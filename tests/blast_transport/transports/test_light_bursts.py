"""Optical bursts of the compiled engine, compared on the wire with the Python reference."""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.base.errors import LightPathError, SourceChangedError
from blast_transport.base.waker import Waker
from blast_transport.blocks.block_map import BlockMap
from blast_transport.datagrams.compiled_bursts import CompiledBursts
from blast_transport.datagrams.interface import open_group_socket
from blast_transport.links.dialling import dial
from blast_transport.store.sources.compiled_reader import open_reader
from blast_transport.store.sources.source import opened_file
from blast_transport.transports.optical.sender import OpticalSender
from blast_transport.transports.sending import SendingContext, SendingEvent
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.transport.transport_data import Data, data_of
from tests.support.transport.transport_hosts import LOOPBACK, light
from tests.support.waiting import eventually

pytestmark = pytest.mark.compiled

SESSION = 0xB1A57
MAX_BLOCKS = 80
"""All datagrams of these blocks together fit into a socket buffer."""
SO_NO_CHECK = 11
"""Linux's option number; without checksums, the kernel does not segment super-packets."""


class Side:
    """The optical transport of one engine with its own file, its events and its datagrams."""

    def __init__(self, engine: str, data: Data, held: BlockMap, undo: ExitStack) -> None:
        self.path = Path(undo.enter_context(tempfile.TemporaryDirectory())) / "file"
        self.path.write_bytes(data.content)
        source = undo.enter_context(opened_file(self.path))
        self.reader = open_reader(engine, source, data.layout, data.suite, None)
        assert self.reader.engine == engine
        choice = light()
        self.socket_in = undo.enter_context(open_group_socket(LOOPBACK, choice.group, choice.port))
        waker = undo.enter_context(closing(Waker()))
        around = SendingContext(self.reader, held, (), LOOPBACK, LOOPBACK, dial, None, waker.wake, waker.fileno())
        self.transport = OpticalSender(Phase(SESSION, 1, OPTICAL, 0), choice, around)
        undo.callback(self.transport.close)
        assert isinstance(self.transport._bursts, CompiledBursts) == (engine == COMPILED)
        self.datagrams: list[bytes] = []
        self.events: list[SendingEvent] = []
        self.error = ""

    def work(self, now: float) -> float | None:
        """Run one step, collect its events and datagrams, and return the seconds to wait."""
        wait = None
        if not self.error:
            try:
                wait = self.transport.work(now)
            except (SourceChangedError, LightPathError) as error:
                self.error = f"{type(error).__name__}: {error}"
        self.events += self.transport.events()
        eventually(self._all_received, "the sent datagrams to arrive")
        return wait

    def _all_received(self) -> bool:
        try:
            while True:
                self.datagrams.append(self.socket_in.recv(1 << 16))
        except BlockingIOError:
            return len(self.datagrams) >= self.transport.datagrams

    @property
    def seen(self) -> tuple[object, ...]:
        """Return the observable state, which must not differ between the engines."""
        transport = self.transport
        state = transport.datagrams, transport.offload, transport.over, list(map(str, self.events)), self.error
        return self.datagrams, state


steps = st.lists(
    st.one_of(
        st.tuples(st.just("permit"), st.integers(0, MAX_BLOCKS)),
        st.tuples(st.just("again"), st.tuples(st.integers(0, MAX_BLOCKS - 1), st.integers(0, 255))),
        st.tuples(st.just("pace"), st.sampled_from([1e5, 1e6, 1e7, 1e9])),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 1e-4, 1e-3, 5e-3, 0.1])),
    ),
    max_size=30,
)
datas = st.builds(
    data_of, st.integers(0, 4000), st.sampled_from([10, 17, 100]), st.integers(4, 8), seed=st.integers(0, 9)
)


def pair(data: Data, held: list[tuple[int, int]], undo: ExitStack) -> tuple[Side, Side]:
    """Return the sides of the Python engine and of the compiled one."""
    everywhere = BlockMap()
    for first, count in held:
        everywhere.add_range(first, count)
    return Side(PYTHON, data, everywhere, undo), Side(COMPILED, data, everywhere, undo)


def drive(sides: tuple[Side, Side], blocks: int, script: list[tuple[str, object]]) -> None:
    """Run the same steps on both sides in simulated time, and finally permit all blocks."""
    now, max_steps = 100.0, 10_000
    for action, value in [*script, ("pace", 1e9), ("permit", blocks)]:
        if action == "wait":
            assert isinstance(value, float)
            now += value
        for one in sides:
            if action == "permit":
                one.transport.permit(min(int(str(value)), blocks))
            elif action == "pace":
                one.transport.pace(float(str(value)))
            elif action == "again":
                assert isinstance(value, tuple)
                if value[0] < blocks:
                    one.transport.retransmit(*value)
        step_both(sides, now)
    while not sides[0].transport.over and not sides[0].error and (max_steps := max_steps - 1):
        now += max(1e-4, step_both(sides, now) or 0.0)
    assert sides[0].transport.over or sides[0].error


def step_both(sides: tuple[Side, Side], now: float) -> float | None:
    python, compiled = (one.work(now) for one in sides)
    assert python == compiled
    assert sides[0].seen == sides[1].seen
    return python


def segments_of(datagrams: list[bytes]) -> list[tuple[int, bytes]]:
    """Return the (number, payload) of each datagram."""
    return [(HEADER.unpack_from(one)[2], one[HEADER.size :]) for one in datagrams]


@settings(max_examples=100, deadline=None)
@given(
    data=datas,
    script=steps,
    held=st.lists(st.tuples(st.integers(0, MAX_BLOCKS), st.integers(1, 9)), max_size=3),
    cut=st.booleans(),
)
def test_engines_send_same_datagrams_for_same_steps(
    data: Data, script: list[tuple[str, object]], held: list[tuple[int, int]], cut: bool
) -> None:
    """After each step, datagrams and their order, events and waits are equal."""
    with ExitStack() as undo:
        sides = pair(data, held, undo)
        for one in sides:
            if not cut:
                one.transport._socket.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        drive(sides, data.blocks, script)
        layout = data.layout
        skipped = {block for first, count in held for block in range(first, first + count)}
        sent = dict(segments_of(sides[1].datagrams))
        for block in set(range(data.blocks)) - skipped:
            first = block * layout.block_segments
            assert b"".join(sent[first + index] for index in range(layout.segments(block))) == data.block(block)
        assert sides[1].transport.offload == (cut if sides[1].datagrams else None)
        assert sides[1].reader.take_digests() == data.digests()


@settings(max_examples=60, deadline=None)
@given(data=datas, steps=st.integers(0, 30), left=st.integers(0, 3999))
def test_engines_report_truncated_file_alike(data: Data, steps: int, left: int) -> None:
    """Python detects it at the next block that it reads, the compiled engine at the end of the file."""
    with ExitStack() as undo:
        sides = pair(data, [], undo)
        for one in sides:
            one.transport.pace(1e6)
        now = 100.0
        for number in range(steps):
            now += 1e-3
            for one in sides:
                one.transport.permit(number)
            step_both(sides, now)
        for one in sides:
            os.truncate(one.path, min(left, len(data.content)))
            one.transport.permit(data.blocks)
            for later in range(10_000):
                if one.transport.over or one.error:
                    break
                one.work(now + 1e-3 * later)
        python, compiled = sides
        assert compiled.datagrams[: len(python.datagrams)] == python.datagrams
        assert python.transport.over or "was changed while it was sent" in python.error
        assert compiled.transport.over or compiled.error == python.error.replace(str(python.path), str(compiled.path))
