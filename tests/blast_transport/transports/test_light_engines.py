"""Light by the compiled engine beside that in Python, which is the reference: the same datagrams, over real sockets."""

from __future__ import annotations

import os
import select
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.blocks.layout import BlockLayout
from blast_transport.links.dialling import dial
from blast_transport.store.opening import open_assembly
from blast_transport.transports.optical import compiled_light, light_socket
from blast_transport.transports.optical.compiled_light import CompiledLight, open_light
from blast_transport.transports.optical.light_intake import PythonLight
from blast_transport.transports.optical.offload import UDP_SEGMENT, take_super_packets
from blast_transport.transports.optical.parameters import OpticalParameters
from blast_transport.transports.optical.receiver import OpticalReceiver
from blast_transport.transports.receiving import ReceivingContext
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.datagrams import LOOPBACK, bound_socket, delivered, on_one_processor
from tests.support.engines import file_store
from tests.support.transport_data import data_of

pytestmark = pytest.mark.compiled

SESSION = 0xB1A57
SIZE, COUNT, MAX_BLOCKS = 10, 4, 30
DATAGRAM = HEADER.size + SIZE
SEGMENTS = COUNT * MAX_BLOCKS
CONTENT = data_of(SEGMENTS * SIZE, SIZE, COUNT).content
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _sent_in_order() -> Iterator[None]:
    with on_one_processor():
        yield


@dataclass(frozen=True)
class Sent:
    """A row of segments as it leaves.

    `super_packet`: together, else one by one. `torn`: so many bytes less, or more. `marks`: of which segment which
    session or flags are another's. `changed`: a byte of the first one is.
    """

    first: int
    count: int
    super_packet: bool = True
    torn: int = 0
    mark: tuple[int, int, int] | None = None
    changed: bool = False

    def datagrams(self, content: bytes) -> list[bytes]:
        """As they leave."""
        row = []
        for index in range(self.count):
            segment = self.first + index
            session, flags = SESSION, 0
            if self.mark is not None and self.mark[0] == index:
                session, flags = SESSION ^ self.mark[1], self.mark[2]
            payload = content[segment * SIZE : (segment + 1) * SIZE] or bytes(SIZE)
            row.append(HEADER.pack(session, flags, segment % (1 << 64)) + payload)
        if self.changed:
            row[0] = row[0][:-1] + bytes([row[0][-1] ^ 1])
        if self.torn < 0:
            row[-1] = row[-1][: self.torn]
        elif self.torn:
            row[-1] += bytes(self.torn)
        return row


rows = st.builds(
    Sent,
    st.integers(0, MAX_BLOCKS).map(lambda block: block * COUNT) | st.integers(0, SEGMENTS) | st.just((1 << 64) - 2),
    st.just(COUNT) | st.integers(1, 7),
    st.booleans(),
    st.sampled_from([0] * 12 + [-1, -9, -10, -11, -25, -26, 1, 16]),
    st.none() | st.none() | st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from([0, 1, 1 << 31])),
    st.sampled_from([False] * 7 + [True]),
)
NO_ROOM = Sent((1 << 64) - 2, COUNT, super_packet=False)
WHOLE_BLOCK = Sent(0, COUNT, super_packet=False)
BLOCKS_PER_READ = 64
"""As many datagrams as so many blocks have are read by one call of the compiled engine at most."""
BEYOND_ONE_READING = [WHOLE_BLOCK, NO_ROOM, WHOLE_BLOCK, replace(NO_ROOM, count=7), *[NO_ROOM] * 2, *[WHOLE_BLOCK] * 6]
steps = st.lists(st.tuples(st.lists(rows, min_size=1, max_size=12), st.integers(0, SEGMENTS + 9)), max_size=6)
Steps = list[tuple[list[Sent], int]]


def joined(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the runs in the order of their arrival; a run that starts where the previous one ends extends it."""
    rows = list[tuple[int, int]]()
    for start, stop in runs:
        goes_on = rows and rows[-1][1] == start
        rows.append((rows.pop()[0] if goes_on else start, stop))
    return rows


class Hearer:
    """A receiver's light by one engine, and all that its session hears."""

    def __init__(self, engine: str, layout: BlockLayout, undo: ExitStack) -> None:
        self.engine = engine
        store = file_store(engine, Path(undo.enter_context(tempfile.TemporaryDirectory())), layout)
        undo.callback(store.discard)
        self.assembly = open_assembly(store, None)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        undo.callback(self.socket.close)
        self.socket.setblocking(False)
        self.socket.bind((LOOPBACK, 0))
        self.address = self.socket.getsockname()
        self.bytes = 0

    def listen(self, source: tuple[str, int]) -> None:
        """From now on to this one; what came from others before is in the socket."""
        self.light = open_light(self.socket, source, SESSION, self.assembly)
        assert isinstance(self.light, CompiledLight if self.engine == COMPILED else PythonLight)

    def read(self, stop: int) -> tuple[list[tuple[int, int]], int]:
        """Everything that is there, as runs that have passed and how many segments were new.

        How much is read at once, and where that cuts a run in two, is each engine's own affair.
        """
        self.light.stop = stop
        while select.select([self.socket], [], [], 0)[0]:
            self.bytes += self.light.read()
        arrived = self.light.arrived(0.0)
        return joined(arrived.runs), arrived.new

    @property
    def seen(self) -> tuple[object, ...]:
        """What must not differ."""
        store = self.assembly.store
        assert store.descriptor is not None
        file = os.pread(store.descriptor, 2 * len(CONTENT), 0)
        counts = self.assembly.duplicates, self.assembly.refused, self.bytes, store.corrupt
        return counts, list(store.held.ranges()), self.assembly.missing(0, SEGMENTS + 9), store.position, file


def send(mouth: socket.socket, there: Sequence[Hearer], sent: Sent) -> None:
    """Send the same datagrams to each receiver."""
    datagrams = sent.datagrams(CONTENT)
    together = sent.super_packet and sent.torn <= 0
    mouth.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM if together else 0)
    for one in there:
        for message in [b"".join(datagrams)] if together else datagrams:
            mouth.sendto(message, one.address)


@pytest.mark.parametrize("joins", [True, False], ids=["super-packets", "datagrams"])
@settings(max_examples=150, deadline=None)
@example(size=1, known=False, strange=[WHOLE_BLOCK] * 4, steps=[(BEYOND_ONE_READING, 2)])
@given(size=st.integers(1, len(CONTENT)), known=st.booleans(), strange=st.lists(rows, max_size=4), steps=steps)
def test_the_same_datagrams_do_the_same(joins: bool, size: int, known: bool, strange: list[Sent], steps: Steps) -> None:
    """Joined by the kernel or not: the same has passed, was new, is stored, missing, wrong and refused."""
    layout = BlockLayout(size if known else None, SIZE, COUNT)
    data = data_of(size, SIZE, COUNT)
    with ExitStack() as undo:
        patch = undo.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(light_socket, "take_super_packets", take_super_packets if joins else lambda _: False)
        there = [Hearer(engine, layout, undo) for engine in (PYTHON, COMPILED)]
        mouth, stranger = undo.enter_context(bound_socket()), undo.enter_context(bound_socket())
        for one in strange:
            # How many datagrams one too long would have been nobody can know who has no room for it.
            send(stranger, there, one if joins else replace(one, torn=min(one.torn, 0)))
        delivered(stranger)
        for one in there:
            one.listen(mouth.getsockname())
            one.assembly.store.expect(0, data.digests())
        for row, stop in steps:
            for one in row:
                send(mouth, there, one if joins else replace(one, torn=min(one.torn, 1)))
            delivered(mouth)
            python, compiled = (one.read(stop) for one in there)
            assert python == compiled
            assert there[0].seen == there[1].seen


@pytest.mark.parametrize("engine", [PYTHON, COMPILED])
@pytest.mark.parametrize("address", [LOOPBACK, "127.0.0.2"], ids=["another port", "another address"])
@pytest.mark.parametrize("is_routed", [True, False], ids=["routed", "no route"])
def test_datagrams_of_another_sender_are_not_taken(
    engine: str, address: str, is_routed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops them where it has a route to the sender; the engine refuses them where it has none."""
    if not is_routed:
        monkeypatch.setattr(compiled_light, "listen_to", lambda sock, _: take_super_packets(sock))
        monkeypatch.setattr(light_socket, "listen_to", lambda sock, _: take_super_packets(sock))
    with ExitStack() as undo:
        there = Hearer(engine, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        mouth = undo.enter_context(bound_socket())
        stranger = undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        stranger.bind((address, 0 if address == LOOPBACK else mouth.getsockname()[1]))
        there.listen(mouth.getsockname())
        send(stranger, [there], WHOLE_BLOCK)
        send(mouth, [there], Sent(COUNT, COUNT))
        delivered(mouth)
        assert there.read(SEGMENTS) == ([(COUNT, 2 * COUNT)], COUNT)
        assert there.assembly.refused == (0 if is_routed else COUNT)
        assert list(there.assembly.store.held.ranges()) == [(1, 1)]


@pytest.mark.parametrize("joins", [True, False], ids=["super-packets", "datagrams"])
def test_reading_does_not_go_on_for_ever(joins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many super-packets, or their datagrams, in one call at most; and no datagram is left behind."""
    monkeypatch.setattr(light_socket, "take_super_packets", take_super_packets if joins else lambda _: False)
    with ExitStack() as undo:
        there = Hearer(COMPILED, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        mouth = undo.enter_context(bound_socket())
        there.listen(mouth.getsockname())
        there.light.stop = SEGMENTS
        there.assembly.store.expect(0, data_of(len(CONTENT), SIZE, COUNT).digests())
        blocks = [*range(MAX_BLOCKS)] * 4
        for block in blocks:
            send(mouth, [there], Sent(block * COUNT, COUNT))
        delivered(mouth)
        # Who is kept from the processor reads less at a time.
        read = [there.light.read()]
        while not there.light.emptied:
            read.append(there.light.read())
        assert len(read) > 1 and max(read) <= BLOCKS_PER_READ * COUNT * SIZE
        assert sum(read) == len(blocks) * COUNT * SIZE and (there.light.read(), there.light.emptied) == (0, True)
        assert there.light.arrived(0.0).new == SEGMENTS and there.assembly.duplicates == 3 * SEGMENTS
        assert there.assembly.store.complete


def receiving(there: Hearer, mouth: socket.socket, woken: socket.socket) -> OpticalReceiver:
    """Return the transport of a session that the socket `woken` wakes."""
    said = to_parameters(OpticalParameters("239.7.7.7", 7001, *mouth.getsockname()))
    at = (woken.fileno(), woken.fileno())
    around = ReceivingContext(there.assembly, dial, LOOPBACK, lambda *_: there.socket, lambda: None, lambda: at)
    transport = OpticalReceiver(Phase(SESSION, 1, OPTICAL, 0, parameters=said), around)
    transport.permit(SEGMENTS)
    return transport


@pytest.mark.parametrize("engine", [PYTHON, COMPILED])
def test_who_may_stay_hears_of_all_in_the_end_and_ends_when_woken(engine: str) -> None:
    """How often either is called is its own affair."""
    with ExitStack() as undo:
        there = Hearer(engine, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        mouth, woken = undo.enter_context(bound_socket()), undo.enter_context(bound_socket())
        transport = receiving(there, mouth, woken)
        passed = list[tuple[int, int]]()

        def shine() -> None:
            for block in range(MAX_BLOCKS):
                send(mouth, [there], Sent(block * COUNT, COUNT))
                time.sleep(0.001)  # a slow sender

        sender = threading.Thread(target=shine)
        sender.start()
        while sum(stop - first for first, stop in passed) < SEGMENTS:
            assert select.select([there.socket], [], [], PATIENCE)[0]
            transport.stay(time.monotonic() + PATIENCE, SEGMENTS)
            transport.work()
            passed += [run for arrived in transport.events() for run in arrived.runs]
        sender.join()
        assert joined(passed) == [(0, SEGMENTS)]
        send(mouth, [there], Sent(0, COUNT))
        delivered(mouth)
        mouth.sendto(b"wake", woken.getsockname())
        began = time.monotonic()
        transport.stay(began + PATIENCE, SEGMENTS)
        transport.work()
        assert time.monotonic() < began + PATIENCE
        assert there.assembly.duplicates == COUNT


@pytest.mark.parametrize("engine", [PYTHON, COMPILED])
def test_all_that_has_come_when_the_light_ends_is_read(engine: str) -> None:
    with ExitStack() as undo:
        there = Hearer(engine, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        mouth = undo.enter_context(bound_socket())
        transport = receiving(there, mouth, mouth)
        for block in range(MAX_BLOCKS):
            send(mouth, [there], Sent(block * COUNT, COUNT))
        delivered(mouth)
        transport.drain()
        assert sum(arrived.new for arrived in transport.events()) == SEGMENTS


def test_a_socket_of_another_class_is_read_by_python() -> None:
    class Another(socket.socket):
        """May receive in a way of its own."""

    with ExitStack() as undo:
        there = Hearer(COMPILED, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        with Another(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            assert isinstance(open_light(sock, (LOOPBACK, 9), SESSION, there.assembly), PythonLight)


def test_a_socket_that_fails_says_so() -> None:
    """As Python's would: an error of the system, and not one of the store."""
    with ExitStack() as undo:
        there = Hearer(COMPILED, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        there.listen((LOOPBACK, 9))
        reader, writer = os.pipe()
        undo.callback(os.close, writer)
        os.dup2(reader, there.socket.fileno())
        os.close(reader)
        with pytest.raises(OSError, match="socket"):
            there.light.read()
