"""Optical bursts of both engines: failed paths, pacing, and super-packets."""

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
from blast_transport.datagrams.bursts import BurstLimit, Bursts, ReadBursts
from blast_transport.datagrams.compiled_bursts import CompiledBursts, open_bursts
from blast_transport.datagrams.offload import UDP_GRO
from blast_transport.datagrams.pacing import SHARE, Pacer
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.compiled_reader import CompiledReader, open_reader
from blast_transport.store.sources.source import StreamSource, opened_file
from blast_transport.wire.datagram import HEADER, wire_bytes
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL
from tests.support.transport.engines import BOTH
from tests.support.transport.transport_data import SUITE, Data, data_of
from tests.support.transport.transport_hosts import LOOPBACK

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


def at_once(max_datagrams: int = 1000) -> tuple[Pacer, BurstLimit]:
    """Return a pacer and a limit that permit all data immediately."""
    return Pacer(1e15, SEGMENT, 0.0), BurstLimit(max_datagrams, 1.0, 1.0)


def bursts_of(sending: socket.socket, reader: BlockReader, undo: ExitStack) -> Bursts:
    return open_bursts(sending, PHASE, reader, undo.enter_context(closing(Waker())).fileno())


def ends(undo: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Return a sending and a receiving socket."""
    receiving, sending = (undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
    receiving.bind((LOOPBACK, 0))
    receiving.settimeout(10)
    sending.connect(receiving.getsockname())
    return sending, receiving


def received(receiving: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """Return (segment, payload) of the next `count` datagrams."""
    datagrams = [receiving.recv(1 << 16) for _ in range(count)]
    return [(HEADER.unpack_from(one)[2], one[HEADER.size :]) for one in datagrams]


def of_block(block: int, mask: int = -1) -> list[tuple[int, bytes]]:
    """Return (segment, payload) of the segments of a block that are in the mask."""
    plain, first = DATA.block(block), block * SEGMENTS
    return [
        (first + index, plain[index * SEGMENT : (index + 1) * SEGMENT])
        for index in range(DATA.layout.segments(block))
        if mask >> index & 1
    ]


@pytest.mark.parametrize("engine", BOTH)
def test_datagrams_before_path_failure_are_counted(engine: str, tmp_path: Path, undo: ExitStack) -> None:
    """On loopback, the first burst reveals that no receiver is bound to the port."""
    sending, receiving = ends(undo)
    receiving.close()
    bursts = bursts_of(sending, reader := reader_of(engine, tmp_path, undo), undo)
    with pytest.raises(LightPathError, match="rejects datagrams of 116 bytes: Connection refused"):
        bursts.go_on(5, SEGMENTS, *at_once())
    assert (bursts.block, bursts.segment, bursts.datagrams) == (1, 0, SEGMENTS)
    assert bursts.wire_bytes == SEGMENTS * wire_bytes(SEGMENT)
    assert reader.take_digests() == DATA.digests(0, 2), "blocks that were read are digested"


@pytest.mark.parametrize("engine", BOTH)
def test_burst_waits_for_pacer_allowance_and_limit(engine: str, tmp_path: Path, undo: ExitStack) -> None:
    sending, receiving = ends(undo)
    bursts = bursts_of(sending, reader_of(engine, tmp_path, undo), undo)
    block = SEGMENTS * wire_bytes(SEGMENT)
    for max_datagrams, allowed, number in [
        (9, 0, 1),
        (9, block - 1, 1),
        (9, block, 2),
        (2, 9 * block, 2),
        (0, block, 0),
    ]:
        # A burst after a pause is a millisecond long.
        pacer = Pacer((allowed + 0.5) * 8 / 0.001, 0, 0.0)
        assert pacer.allowance(9.0) == allowed
        assert bursts.go_on(40, SEGMENTS, pacer, BurstLimit(max_datagrams, 9.0, 9.0)) == number
    assert bursts.go_on(40, SEGMENTS, pacer, BurstLimit(9, -1.0, -1.0)) == 0
    assert bursts.block == 6 and len(received(receiving, 6 * SEGMENTS)) == bursts.datagrams


def slow(seconds: float) -> Pacer:
    """Return a pacer that allows one block every `seconds`, the first after that time."""
    now = time.monotonic()
    pacer = Pacer(SEGMENTS * wire_bytes(SEGMENT) * 8 / SHARE / seconds, 0, now)
    pacer.sent(0, now)
    return pacer


def limit(seconds: float) -> BurstLimit:
    now = time.monotonic()
    return BurstLimit(1000, now, now + seconds)


@pytest.mark.compiled
def test_compiled_bursts_wait_for_pacer(tmp_path: Path, undo: ExitStack) -> None:
    sending, receiving = ends(undo)
    bursts = bursts_of(sending, reader_of(COMPILED, tmp_path, undo), undo)
    pacer, began = slow(0.01), time.monotonic()
    assert bursts.go_on(5, SEGMENTS, pacer, limit(60)) == 5
    # The first burst leaves at once; after a late wake-up, several leave together.
    assert time.monotonic() - began >= 3 * 0.01 * 0.99
    assert pacer.due[0] >= began + 5 * 0.01 * 0.99
    assert received(receiving, 5 * SEGMENTS) == [one for block in range(5) for one in of_block(block)]
    assert bursts.go_on(40, SEGMENTS, slow(1e6), limit(0.001)) == 1, "bursts beyond the deadline are not sent"
    assert bursts.go_on(40, SEGMENTS, pacer, BurstLimit(9, began, began)) == 0, "after the deadline, no burst leaves"


@pytest.mark.compiled
def test_waker_ends_wait_for_pacer(tmp_path: Path, undo: ExitStack) -> None:
    waker = undo.enter_context(closing(Waker()))
    bursts = open_bursts(ends(undo)[0], PHASE, reader_of(COMPILED, tmp_path, undo), waker.fileno())
    waker.wake()
    assert bursts.go_on(40, SEGMENTS, slow(20), limit(100)) == 1


@pytest.mark.compiled
def test_signal_ends_wait_for_pacer(tmp_path: Path, undo: ExitStack, own_signals: None) -> None:
    bursts = bursts_of(ends(undo)[0], reader_of(COMPILED, tmp_path, undo), undo)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    over = threading.Event()
    sender = threading.Thread(target=_signals, args=(threading.get_ident(), over))
    sender.start()
    try:
        assert bursts.go_on(40, SEGMENTS, slow(20), limit(100)) == 1
    finally:
        over.set()
        sender.join()


def _signals(thread: int, over: threading.Event) -> None:
    # A signal may arrive before the wait.
    while not over.wait(0.01):
        signal.pthread_kill(thread, signal.SIGUSR1)


@pytest.mark.parametrize("engine", BOTH)
def test_started_block_is_sent_as_it_was_read(engine: str, tmp_path: Path, undo: ExitStack) -> None:
    sending, receiving = ends(undo)
    bursts = bursts_of(sending, reader := reader_of(engine, tmp_path, undo), undo)
    assert bursts.go_on(2, 3, *at_once(3)) == 3
    assert (bursts.block, bursts.segment) == (1, 3)
    (tmp_path / "file").write_bytes(bytes(len(DATA.content)))
    assert bursts.go_on(0, 3, *at_once()) == 1
    assert (bursts.block, bursts.segment) == (2, 0)
    assert received(receiving, 2 * SEGMENTS) == of_block(0) + of_block(1)
    assert reader.take_digests() == DATA.digests(0, 2)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("repairs", "datagrams"),
    [
        ([(block, 0b0101) for block in range(8)] + [(9, 1 << 31), (2, 0b1)], [17, 1]),
        ([(block, 0b1111_1111) for block in range(5)], [32, 8]),
        ([(1, 0xFFFF_FFFF), (2, 0xFFFF_FFFF)], [32, 32]),
    ],
)
def test_repairs_of_several_blocks_share_super_packets(
    repairs: list[tuple[int, int]], datagrams: list[int], tmp_path: Path, undo: ExitStack
) -> None:
    """A super-packet has at most the datagrams of a block; only its last datagram may be short."""
    data = data_of(10 * 32 * SEGMENT - 30, SEGMENT, 32)
    sending, receiving = ends(undo)
    receiving.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    bursts = bursts_of(sending, reader_of(COMPILED, tmp_path, undo, data), undo)
    bursts.again(repairs)
    assert bursts.datagrams == sum(datagrams)
    full = HEADER.size + SEGMENT
    assert [-(-len(receiving.recv(1 << 16)) // full) for _ in datagrams] == datagrams


def chosen(reader: BlockReader, undo: ExitStack) -> Bursts:
    return bursts_of(ends(undo)[0], reader, undo)


@pytest.mark.compiled
def test_compiled_bursts_require_unsealed_files_and_best_digests(tmp_path: Path, undo: ExitStack) -> None:
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
def test_invalid_burst_calls_raise_engine_error(tmp_path: Path, undo: ExitStack) -> None:
    bursts = bursts_of(ends(undo)[0], reader := reader_of(COMPILED, tmp_path, undo), undo)
    assert isinstance(reader, CompiledReader)
    for stop, piece, segment in [(41, SEGMENTS, 0), (1, 0, 0), (1, 1, 4)]:
        bursts.block, bursts.segment = (40 if stop > 40 else 0), segment
        with pytest.raises(EngineError, match="choose the engine python, and report this"):
            bursts.go_on(stop, piece, *at_once())
    for cut in [(100, 0, 4), (100, 10, 65), (100, 10, 0), (100, 65_492, 1), ((1 << 27) * 40 + 1, 10, 4)]:
        with pytest.raises(reader.native.EngineFault):
            reader.native.Bursts(1, cut, False)
