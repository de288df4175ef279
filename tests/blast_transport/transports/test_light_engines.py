"""Optical reception of the compiled engine, compared over real sockets with the Python reference."""

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
from blast_transport.datagrams import compiled_intake, group_socket
from blast_transport.datagrams.compiled_intake import CompiledDatagrams, open_datagrams
from blast_transport.datagrams.intake import PythonIntake
from blast_transport.datagrams.offload import UDP_SEGMENT, take_super_packets
from blast_transport.links.dialling import dial
from blast_transport.store.opening import open_assembly
from blast_transport.transports.optical.receiver import OpticalReceiver
from blast_transport.transports.receiving import ReceivingContext
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.groups import GroupParameters
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.transport.datagrams import LOOPBACK, bound_socket, delivered, on_one_processor
from tests.support.transport.engines import file_store
from tests.support.transport.transport_data import data_of

pytestmark = pytest.mark.compiled

SESSION = 0xB1A57
SIZE, COUNT, MAX_BLOCKS = 10, 4, 30
DATAGRAM = HEADER.size + SIZE
SEGMENTS = COUNT * MAX_BLOCKS
CONTENT = data_of(SEGMENTS * SIZE, SIZE, COUNT).content
TIMEOUT = 60.0


@pytest.fixture(autouse=True)
def _sent_in_order() -> Iterator[None]:
    with on_one_processor():
        yield


@dataclass(frozen=True)
class Sent:
    """A row of segments as it is sent.

    `super_packet`: together, else one by one. `torn`: bytes to add or remove at the end. `mark`: the segment whose
    session or flags are wrong. `changed`: a byte of the first segment is wrong.
    """

    first: int
    count: int
    super_packet: bool = True
    torn: int = 0
    mark: tuple[int, int, int] | None = None
    changed: bool = False

    def datagrams(self, content: bytes) -> list[bytes]:
        """Return the datagrams of the row."""
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
"""One call of the compiled engine reads at most the datagrams of this number of blocks."""
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


class EngineReceiver:
    """The optical reception of one engine, and the state of its session."""

    def __init__(self, engine: str, layout: BlockLayout, undo: ExitStack) -> None:
        self.engine = engine
        store = file_store(engine, Path(undo.enter_context(tempfile.TemporaryDirectory())), layout)
        undo.callback(store.discard)
        self.assembly = open_assembly(store, None)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        undo.callback(self.socket.close)
        self.socket.setblocking(False)
        # The default holds 212,992 bytes, of which Linux 6.18 counts 840 for each of the datagrams.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind((LOOPBACK, 0))
        self.address = self.socket.getsockname()
        self.bytes = 0

    def listen(self, source: tuple[str, int]) -> None:
        """Accept datagrams of this source only; earlier ones of others are still in the socket."""
        self.light = open_datagrams(self.socket, source, SESSION, self.assembly)
        assert isinstance(self.light, CompiledDatagrams if self.engine == COMPILED else PythonIntake)

    def read(self, stop: int) -> tuple[list[tuple[int, int]], int]:
        """Read all available datagrams, and return their runs and the number of new segments.

        The engines may read different amounts at once, and so split runs differently.
        """
        self.light.stop = stop
        while select.select([self.socket], [], [], 0)[0]:
            self.bytes += self.light.read()
        arrived = self.light.arrived(0.0)
        return joined(arrived.runs), arrived.new

    @property
    def seen(self) -> tuple[object, ...]:
        """Return the observable state, which must not differ between the engines."""
        store = self.assembly.store
        assert store.descriptor is not None
        file = os.pread(store.descriptor, 2 * len(CONTENT), 0)
        counts = self.assembly.duplicates, self.assembly.refused, self.bytes, store.corrupt
        return counts, list(store.held.ranges()), self.assembly.missing(0, SEGMENTS + 9), store.position, file


def send(sending: socket.socket, receivers: Sequence[EngineReceiver], sent: Sent) -> None:
    """Send the same datagrams to each receiver."""
    datagrams = sent.datagrams(CONTENT)
    together = sent.super_packet and sent.torn <= 0
    sending.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM if together else 0)
    for one in receivers:
        for message in [b"".join(datagrams)] if together else datagrams:
            sending.sendto(message, one.address)


@pytest.mark.parametrize("joins", [True, False], ids=["super-packets", "datagrams"])
@settings(max_examples=150, deadline=None)
@example(size=1, known=False, foreign=[WHOLE_BLOCK] * 4, steps=[(BEYOND_ONE_READING, 2)])
@given(size=st.integers(1, len(CONTENT)), known=st.booleans(), foreign=st.lists(rows, max_size=4), steps=steps)
def test_engines_process_datagrams_alike(
    joins: bool, size: int, known: bool, foreign: list[Sent], steps: Steps
) -> None:
    """Runs and the new, stored, missing, wrong and refused segments are equal, joined by the kernel or not."""
    layout = BlockLayout(size if known else None, SIZE, COUNT)
    data = data_of(size, SIZE, COUNT)
    with ExitStack() as undo:
        patch = undo.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(group_socket, "take_super_packets", take_super_packets if joins else lambda _: False)
        receivers = [EngineReceiver(engine, layout, undo) for engine in (PYTHON, COMPILED)]
        sending, foreign_socket = undo.enter_context(bound_socket()), undo.enter_context(bound_socket())
        for one in foreign:
            # An engine without room for a datagram that is too long cannot count its segments.
            send(foreign_socket, receivers, one if joins else replace(one, torn=min(one.torn, 0)))
        delivered(foreign_socket)
        for one in receivers:
            one.listen(sending.getsockname())
            one.assembly.store.expect(0, data.digests())
        for row, stop in steps:
            for one in row:
                send(sending, receivers, one if joins else replace(one, torn=min(one.torn, 1)))
            delivered(sending)
            python, compiled = (one.read(stop) for one in receivers)
            assert python == compiled
            assert receivers[0].seen == receivers[1].seen


@pytest.mark.parametrize("engine", [PYTHON, COMPILED])
@pytest.mark.parametrize("address", [LOOPBACK, "127.0.0.2"], ids=["another port", "another address"])
@pytest.mark.parametrize("is_routed", [True, False], ids=["routed", "no route"])
def test_datagrams_of_other_sender_are_rejected(
    engine: str, address: str, is_routed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops them if it has a route to the sender; otherwise the engine refuses them."""
    if not is_routed:
        monkeypatch.setattr(compiled_intake, "listen_to", lambda sock, _: take_super_packets(sock))
        monkeypatch.setattr(group_socket, "listen_to", lambda sock, _: take_super_packets(sock))
    with ExitStack() as undo:
        receiver = EngineReceiver(engine, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        sending = undo.enter_context(bound_socket())
        foreign_socket = undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        foreign_socket.bind((address, 0 if address == LOOPBACK else sending.getsockname()[1]))
        receiver.listen(sending.getsockname())
        send(foreign_socket, [receiver], WHOLE_BLOCK)
        send(sending, [receiver], Sent(COUNT, COUNT))
        delivered(sending)
        assert receiver.read(SEGMENTS) == ([(COUNT, 2 * COUNT)], COUNT)
        assert receiver.assembly.refused == (0 if is_routed else COUNT)
        assert list(receiver.assembly.store.held.ranges()) == [(1, 1)]


@pytest.mark.parametrize("joins", [True, False], ids=["super-packets", "datagrams"])
def test_one_read_returns_bounded_data(joins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of datagrams per call is bounded, and no datagram is lost."""
    monkeypatch.setattr(group_socket, "take_super_packets", take_super_packets if joins else lambda _: False)
    with ExitStack() as undo:
        receiver = EngineReceiver(COMPILED, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        sending = undo.enter_context(bound_socket())
        receiver.listen(sending.getsockname())
        receiver.light.stop = SEGMENTS
        receiver.assembly.store.expect(0, data_of(len(CONTENT), SIZE, COUNT).digests())
        blocks = [*range(MAX_BLOCKS)] * 4
        for block in blocks:
            send(sending, [receiver], Sent(block * COUNT, COUNT))
        delivered(sending)
        # A process that the scheduler delays may read less at a time.
        read = [receiver.light.read()]
        while not receiver.light.emptied:
            read.append(receiver.light.read())
        assert len(read) > 1 and max(read) <= BLOCKS_PER_READ * COUNT * SIZE
        assert sum(read) == len(blocks) * COUNT * SIZE and (receiver.light.read(), receiver.light.emptied) == (0, True)
        assert receiver.light.arrived(0.0).new == SEGMENTS and receiver.assembly.duplicates == 3 * SEGMENTS
        assert receiver.assembly.store.complete


def receiving(receiver: EngineReceiver, sending: socket.socket, woken: socket.socket) -> OpticalReceiver:
    """Return the transport of a session that the socket `woken` wakes."""
    parameters = to_parameters(GroupParameters("239.7.7.7", 7001, *sending.getsockname()))
    at = (woken.fileno(), woken.fileno())
    around = ReceivingContext(
        receiver.assembly, dial, LOOPBACK, None, lambda *_: receiver.socket, lambda: None, lambda: at
    )
    transport = OpticalReceiver(Phase(SESSION, 1, OPTICAL, 0, parameters=parameters), around)
    transport.permit(SEGMENTS)
    return transport


@pytest.mark.parametrize("engine", [PYTHON, COMPILED])
def test_stay_receives_all_datagrams_and_ends_when_woken(engine: str) -> None:
    """The engines may need different numbers of calls."""
    with ExitStack() as undo:
        receiver = EngineReceiver(engine, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        sending, woken = undo.enter_context(bound_socket()), undo.enter_context(bound_socket())
        transport = receiving(receiver, sending, woken)
        passed = list[tuple[int, int]]()

        def send_blocks() -> None:
            for block in range(MAX_BLOCKS):
                send(sending, [receiver], Sent(block * COUNT, COUNT))
                time.sleep(0.001)  # a slow sender

        sender = threading.Thread(target=send_blocks)
        sender.start()
        while sum(stop - first for first, stop in passed) < SEGMENTS:
            assert select.select([receiver.socket], [], [], TIMEOUT)[0]
            transport.stay(time.monotonic() + TIMEOUT, SEGMENTS)
            transport.work()
            passed += [run for arrived in transport.events() for run in arrived.runs]
        sender.join()
        assert joined(passed) == [(0, SEGMENTS)]
        send(sending, [receiver], Sent(0, COUNT))
        delivered(sending)
        sending.sendto(b"wake", woken.getsockname())
        began = time.monotonic()
        transport.stay(began + TIMEOUT, SEGMENTS)
        transport.work()
        assert time.monotonic() < began + TIMEOUT
        assert receiver.assembly.duplicates == COUNT


@pytest.mark.parametrize("engine", [PYTHON, COMPILED])
def test_drain_reads_all_received_datagrams(engine: str) -> None:
    with ExitStack() as undo:
        receiver = EngineReceiver(engine, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        sending = undo.enter_context(bound_socket())
        transport = receiving(receiver, sending, sending)
        for block in range(MAX_BLOCKS):
            send(sending, [receiver], Sent(block * COUNT, COUNT))
        delivered(sending)
        transport.drain()
        assert sum(arrived.new for arrived in transport.events()) == SEGMENTS


def test_socket_subclass_is_read_by_python() -> None:
    class Another(socket.socket):
        """A subclass may override the receive methods."""

    with ExitStack() as undo:
        receiver = EngineReceiver(COMPILED, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        with Another(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            assert isinstance(open_datagrams(sock, (LOOPBACK, 9), SESSION, receiver.assembly), PythonIntake)


def test_failing_socket_raises_os_error() -> None:
    """The compiled engine raises the same error as Python: OSError, not StoreError."""
    with ExitStack() as undo:
        receiver = EngineReceiver(COMPILED, BlockLayout(len(CONTENT), SIZE, COUNT), undo)
        receiver.listen((LOOPBACK, 9))
        reader, writer = os.pipe()
        undo.callback(os.close, writer)
        os.dup2(reader, receiver.socket.fileno())
        os.close(reader)
        with pytest.raises(OSError, match="socket"):
            receiver.light.read()
