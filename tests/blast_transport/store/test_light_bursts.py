"""Bursts by light, by both engines: what they say of a path that fails, and what is gathered."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from blast_transport.base.engines import COMPILED
from blast_transport.base.errors import EngineError, LightPathError
from blast_transport.base.waker import Waker
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.sealing import Sealer, new_key
from blast_transport.store.opening import open_reader
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.compiled_reader import CompiledReader
from blast_transport.store.sources.source import StreamSource, opened_file
from blast_transport.transports.optical.bursts import BurstLimit, Bursts, ReadBursts
from blast_transport.transports.optical.compiled_bursts import CompiledBursts, open_bursts
from blast_transport.transports.optical.offload import UDP_GRO
from blast_transport.transports.optical.pacing import SHARE, Pacer
from blast_transport.wire.datagram import HEADER, wire_bytes
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.engines import BOTH
from tests.support.transport_data import SUITE, Data, data_of
from tests.support.transport_hosts import LOOPBACK

PHASE = Phase(7, 1, OPTICAL, 0)
SEGMENT, SEGMENTS = 100, 4
DATA = data_of(40 * SEGMENTS * SEGMENT - 30, SEGMENT, SEGMENTS)


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def reader_of(engine: str, folder: Path, undo: ExitStack, data: Data = DATA) -> BlockReader:
    (folder / "file").write_bytes(data.content)
    source = undo.enter_context(opened_file(folder / "file"))
    reader = open_reader(engine, source, data.layout, SUITE, None)
    assert reader.engine == engine
    return reader


def at_once(most: int = 1000) -> tuple[Pacer, BurstLimit]:
    """Whatever is asked for may leave now."""
    return Pacer(1e15, SEGMENT, 0.0), BurstLimit(most, 1.0, 1.0)


def bursts_of(mouth: socket.socket, reader: BlockReader, undo: ExitStack) -> Bursts:
    return open_bursts(mouth, PHASE, reader, undo.enter_context(closing(Waker())).fileno())


def ends(undo: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Two of which the second hears what the first sends."""
    ear, mouth = (undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
    ear.bind((LOOPBACK, 0))
    ear.settimeout(10)
    mouth.connect(ear.getsockname())
    return mouth, ear


def heard(ear: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """(segment, payload) of so many datagrams."""
    datagrams = [ear.recv(1 << 16) for _ in range(count)]
    return [(HEADER.unpack_from(one)[2], one[HEADER.size :]) for one in datagrams]


def of_block(block: int, mask: int = -1) -> list[tuple[int, bytes]]:
    """(segment, payload) of those of its segments that are in the mask."""
    plain, first = DATA.block(block), block * SEGMENTS
    return [
        (first + index, plain[index * SEGMENT : (index + 1) * SEGMENT])
        for index in range(DATA.layout.segments(block))
        if mask >> index & 1
    ]


@pytest.mark.parametrize("engine", BOTH)
def test_what_went_before_the_path_failed_counts(engine: str, tmp_path: Path, undo: ExitStack) -> None:
    """On loopback nobody at the other end is known after the first burst."""
    mouth, ear = ends(undo)
    ear.close()
    bursts = bursts_of(mouth, reader := reader_of(engine, tmp_path, undo), undo)
    with pytest.raises(LightPathError, match="rejects datagrams of 116 bytes: Connection refused"):
        bursts.go_on(5, SEGMENTS, *at_once())
    assert (bursts.block, bursts.segment, bursts.datagrams) == (1, 0, SEGMENTS)
    assert bursts.wire_bytes == SEGMENTS * wire_bytes(SEGMENT)
    assert reader.take_digests() == DATA.digests(0, 2), "what was read is digested"


@pytest.mark.parametrize("engine", BOTH)
def test_no_burst_begins_when_more_has_left_than_may(engine: str, tmp_path: Path, undo: ExitStack) -> None:
    mouth, ear = ends(undo)
    bursts = bursts_of(mouth, reader_of(engine, tmp_path, undo), undo)
    block = SEGMENTS * wire_bytes(SEGMENT)
    for most, allowed, number in [
        (9, 0, 1),
        (9, block - 1, 1),
        (9, block, 2),
        (2, 9 * block, 2),
        (0, block, 0),
    ]:
        # A burst after a pause is a millisecond long.
        pacer = Pacer((allowed + 0.5) * 8 / 0.001, 0, 0.0)
        assert pacer.allowance(9.0) == allowed
        assert bursts.go_on(40, SEGMENTS, pacer, BurstLimit(most, 9.0, 9.0)) == number
    assert bursts.go_on(40, SEGMENTS, pacer, BurstLimit(9, -1.0, -1.0)) == 0
    assert bursts.block == 6 and len(heard(ear, 6 * SEGMENTS)) == bursts.datagrams


def slow(seconds: float) -> Pacer:
    """Return a pacer that allows one block every `seconds`, the first after that time."""
    now = time.monotonic()
    pacer = Pacer(SEGMENTS * wire_bytes(SEGMENT) * 8 / SHARE / seconds, 0, now)
    pacer.sent(0, now)
    return pacer


def turn(seconds: float) -> BurstLimit:
    now = time.monotonic()
    return BurstLimit(1000, now, now + seconds)


@pytest.mark.compiled
def test_who_has_the_time_waits_for_the_pacer(tmp_path: Path, undo: ExitStack) -> None:
    mouth, ear = ends(undo)
    bursts = bursts_of(mouth, reader_of(COMPILED, tmp_path, undo), undo)
    pacer, began = slow(0.01), time.monotonic()
    assert bursts.go_on(5, SEGMENTS, pacer, turn(60)) == 5
    # The first leaves at once, and after a late wake-up more do.
    assert time.monotonic() - began >= 3 * 0.01 * 0.99
    assert pacer.due[0] >= began + 5 * 0.01 * 0.99
    assert heard(ear, 5 * SEGMENTS) == [one for block in range(5) for one in of_block(block)]
    assert bursts.go_on(40, SEGMENTS, slow(1e6), turn(0.001)) == 1, "what is due later than he may wait is left"
    assert bursts.go_on(40, SEGMENTS, pacer, BurstLimit(9, began, began)) == 0, "whose time is over waits for nothing"


@pytest.mark.compiled
def test_who_is_called_waits_no_longer(tmp_path: Path, undo: ExitStack) -> None:
    waker = undo.enter_context(closing(Waker()))
    bursts = open_bursts(ends(undo)[0], PHASE, reader_of(COMPILED, tmp_path, undo), waker.fileno())
    waker.wake()
    assert bursts.go_on(40, SEGMENTS, slow(20), turn(100)) == 1


@pytest.mark.compiled
def test_a_signal_ends_the_wait(tmp_path: Path, undo: ExitStack, own_signals: None) -> None:
    bursts = bursts_of(ends(undo)[0], reader_of(COMPILED, tmp_path, undo), undo)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    over = threading.Event()
    sender = threading.Thread(target=_signals, args=(threading.get_ident(), over))
    sender.start()
    try:
        assert bursts.go_on(40, SEGMENTS, slow(20), turn(100)) == 1
    finally:
        over.set()
        sender.join()


def _signals(thread: int, over: threading.Event) -> None:
    # One may come before the wait.
    while not over.wait(0.01):
        signal.pthread_kill(thread, signal.SIGUSR1)


@pytest.mark.parametrize("engine", BOTH)
def test_a_block_that_is_under_way_is_sent_to_its_end_as_it_was_read(
    engine: str, tmp_path: Path, undo: ExitStack
) -> None:
    mouth, ear = ends(undo)
    bursts = bursts_of(mouth, reader := reader_of(engine, tmp_path, undo), undo)
    assert bursts.go_on(2, 3, *at_once(3)) == 3
    assert (bursts.block, bursts.segment) == (1, 3)
    (tmp_path / "file").write_bytes(bytes(len(DATA.content)))
    assert bursts.go_on(0, 3, *at_once()) == 1
    assert (bursts.block, bursts.segment) == (2, 0)
    assert heard(ear, 2 * SEGMENTS) == of_block(0) + of_block(1)
    assert reader.take_digests() == DATA.digests(0, 2)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("owed", "datagrams"),
    [
        ([(block, 0b0101) for block in range(8)] + [(9, 1 << 31), (2, 0b1)], [17, 1]),
        ([(block, 0b1111_1111) for block in range(5)], [32, 8]),
        ([(1, 0xFFFF_FFFF), (2, 0xFFFF_FFFF)], [32, 32]),
    ],
)
def test_repairs_of_many_blocks_leave_in_as_few_super_packets_as_a_receiver_takes(
    owed: list[tuple[int, int]], datagrams: list[int], tmp_path: Path, undo: ExitStack
) -> None:
    """As many datagrams as a block has; none but the last, which here is that of the file, may be a short one."""
    data = data_of(10 * 32 * SEGMENT - 30, SEGMENT, 32)
    mouth, ear = ends(undo)
    ear.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    bursts = bursts_of(mouth, reader_of(COMPILED, tmp_path, undo, data), undo)
    bursts.again(owed)
    assert bursts.datagrams == sum(datagrams)
    full = HEADER.size + SEGMENT
    assert [-(-len(ear.recv(1 << 16)) // full) for _ in datagrams] == datagrams


def chosen(reader: BlockReader, undo: ExitStack) -> Bursts:
    return bursts_of(ends(undo)[0], reader, undo)


@pytest.mark.compiled
def test_only_files_that_travel_open_and_with_our_digests_leave_compiled(tmp_path: Path, undo: ExitStack) -> None:
    reader = reader_of(COMPILED, tmp_path, undo)
    source, layout = reader.source, DATA.layout
    assert isinstance(chosen(reader, undo), CompiledBursts)
    sealed = open_reader(COMPILED, source, BlockLayout(layout.size, SEGMENT, SEGMENTS, 16), SUITE, Sealer(new_key()))
    assert isinstance(sealed, CompiledReader) and isinstance(chosen(sealed, undo), ReadBursts)
    other = open_reader(COMPILED, source, layout, suite_named("sha256"), None)
    assert isinstance(chosen(other, undo), ReadBursts)
    with (tmp_path / "file").open("rb") as opened, StreamSource(opened.fileno()) as stream:
        reader = open_reader(COMPILED, stream, BlockLayout(None, SEGMENT, SEGMENTS), SUITE, None)
        assert isinstance(chosen(reader, undo), ReadBursts)


@pytest.mark.compiled
def test_rules_that_the_caller_breaks_are_errors_of_the_engine(tmp_path: Path, undo: ExitStack) -> None:
    bursts = bursts_of(ends(undo)[0], reader := reader_of(COMPILED, tmp_path, undo), undo)
    assert isinstance(reader, CompiledReader)
    for stop, piece, segment in [(41, SEGMENTS, 0), (1, 0, 0), (1, 1, 4)]:
        bursts.block, bursts.segment = (40 if stop > 40 else 0), segment
        with pytest.raises(EngineError, match="choose the engine python, and report this"):
            bursts.go_on(stop, piece, *at_once())
    for cut in [(100, 0, 4), (100, 10, 65), (100, 10, 0), (100, 65_492, 1), ((1 << 27) * 40 + 1, 10, 4)]:
        with pytest.raises(reader.native.EngineFault):
            reader.native.Bursts(1, cut, False)
