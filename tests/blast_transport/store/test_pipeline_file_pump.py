"""Data from a socket into a file: data to forward and stored blocks after each iteration."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from blast_transport.base import threads
from blast_transport.base.errors import NoThreadError, RemoteProtocolError, StoreError
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks import eager_writer, store_writer
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.store.blocks.store_writer import StoreGauge, StoreWriter
from blast_transport.transports.pipeline.connections import file_pump
from blast_transport.transports.pipeline.connections.file_pump import FileIntake, WrittenOutlet
from blast_transport.transports.pipeline.connections.outlets import FileOutlet
from tests.support.transport.pipeline_chain import SEGMENT, content_of, file_store, finish
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("every_engine")

BLOCK = BlockLayout(None, SEGMENT).block_size


def ignore_writes() -> None:
    """Ignore the notification of a write."""


def check_writers_ended() -> None:
    eventually(lambda: not any(thread.name == "store writer" for thread in threading.enumerate()))


@pytest.fixture
def slow_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_writer, "_is_slow", lambda *_: True)


def take_block(intake: FileIntake, block: bytes) -> None:
    """Let a block arrive, followed by a pause."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(block)
        stop = intake.position + len(block)
        while intake.position < stop:
            intake.take(ours, stop - intake.position)
    intake.settle()


@pytest.mark.parametrize("size", [1, 8 * BLOCK, 30 * BLOCK + 17])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("slow", [False, True])
def test_received_blocks_are_in_file_after_each_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, seed: int, slow: bool
) -> None:
    """A slow store has them once its writer thread has written them."""
    monkeypatch.setattr(eager_writer, "_is_slow", lambda *_: slow)
    content, draw = content_of(size), random.Random(seed)
    store = file_store(tmp_path / "out", "f", size)
    assert store.descriptor is not None
    intake = FileIntake(store, 0, ignore_writes)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs, Path(f"/proc/self/fd/{store.descriptor}").open("rb") as file:
        while intake.position < size:
            for _ in range(draw.randint(1, 6)):
                piece = content[intake.position : intake.position + draw.randint(1, 2 * BLOCK)]
                theirs.sendall(piece)
                taken = 0
                while taken < len(piece):
                    taken += intake.take(ours, len(piece) - taken)
                assert intake.servable <= intake.position
            intake.settle()
            assert intake.servable == (size if intake.position == size else intake.position - intake.position % BLOCK)
            assert slow or intake.drained
            eventually(lambda: intake.drained, "the received data to be written")
            assert store.position == -(-intake.servable // BLOCK)
            file.seek(0)
            assert file.read() == content[: intake.servable]
    intake.complete(True)
    eventually(lambda: intake.drained, "the received data to be written")
    intake.close()
    assert finish(store, content)
    assert (tmp_path / "out" / "f").read_bytes() == content


def test_data_after_end_is_rejected(tmp_path: Path) -> None:
    store = file_store(tmp_path / "out", "f", 10)
    intake = FileIntake(store, 0, ignore_writes)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(bytes(11))
        assert intake.take(ours, 11) == 10
        with pytest.raises(RemoteProtocolError, match="data after byte 10"):
            intake.take(ours, 1)
    store.discard()


@contextmanager
def held_writes(store: object, monkeypatch: pytest.MonkeyPatch, free: int) -> Iterator[threading.Semaphore]:
    """Let the store write `free` rows, then one for each release of the semaphore, and all at the end."""
    put_row, tokens = store.put_row, threading.Semaphore(free)  # type: ignore[attr-defined]

    def held(first: int, data: memoryview) -> None:
        tokens.acquire()
        put_row(first, data)

    monkeypatch.setattr(store, "put_row", held)
    try:
        yield tokens
    finally:
        tokens.release(1 << 20)


@pytest.mark.usefixtures("slow_stores")
def test_unwritten_data_is_forwarded_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 20 * BLOCK + 5
    content, draw = content_of(size), random.Random(5)
    store = file_store(tmp_path / "out", "f", size)
    assert store.descriptor is not None
    intake = FileIntake(store, 0, ignore_writes)
    outlet = WrittenOutlet(FileOutlet(store.descriptor), intake)
    down, successor = socket.socketpair()
    down.setblocking(False)
    with down, successor, held_writes(store, monkeypatch, 3) as tokens:
        for begin in range(0, size, BLOCK):
            take_block(intake, content[begin : begin + BLOCK])
        eventually(lambda: intake.unwritten()[0][0] == 3 * BLOCK, "three rows to be written")
        assert (intake.servable, intake.drained) == (size, False)
        for written in itertools.count(3):
            # From any offset, also across the end of the written data.
            for _ in range(20):
                offset = draw.randrange(size)
                limit = draw.randint(1, size - offset)
                sent = outlet.give(down, offset, limit)
                assert 0 < sent <= limit
                assert successor.recv(sent, socket.MSG_WAITALL) == content[offset : offset + sent]
            if intake.drained:
                break
            tokens.release()
            eventually(
                lambda written=written: intake.drained or intake.unwritten()[0][0] > written * BLOCK,  # type: ignore[misc]
                "one more row to be written",
            )
    intake.complete(True)
    intake.close()
    assert finish(store, content)


@pytest.mark.usefixtures("slow_stores")
def test_full_buffer_pauses_intake_until_store_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pump, "_MAX_WAITING", 4 * BLOCK)
    content = content_of(8 * BLOCK)
    store = file_store(tmp_path / "out", "f", len(content))
    intake = FileIntake(store, 0, ignore_writes)
    with held_writes(store, monkeypatch, 1) as tokens:
        for block in range(5):
            assert intake.ready
            take_block(intake, content[block * BLOCK :][:BLOCK])
        assert not intake.ready
        tokens.release()
        eventually(lambda: intake.ready, "room for one more block")
    intake.close()
    store.discard()


@pytest.mark.usefixtures("slow_stores")
@pytest.mark.parametrize("error", [StoreError("No space left"), ValueError("a bug")])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_failed_store_is_reported_by_intake_and_outlet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Nothing is forwarded from the missing part of the file."""
    store = file_store(tmp_path / "out", "f", 3 * BLOCK)
    assert store.descriptor is not None
    intake = FileIntake(store, 0, ignore_writes)
    outlet = WrittenOutlet(FileOutlet(store.descriptor), intake)

    def full(*_: object) -> None:
        raise error

    take_block(intake, bytes(BLOCK))
    monkeypatch.setattr(store, "put_row", full)
    take_block(intake, bytes(BLOCK))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(StoreError, match=str(error)):
            eventually(lambda: not intake.ready)
        for ask in (lambda: intake.drained, lambda: intake.pace, lambda: outlet.give(ours, BLOCK, BLOCK)):
            with pytest.raises(StoreError, match=str(error)):
                ask()
    check_writers_ended()
    intake.close()
    store.discard()


@pytest.mark.usefixtures("slow_stores")
def test_intake_writes_itself_without_writer_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object) -> None:
        raise NoThreadError("no more")

    monkeypatch.setattr(threads, "start", no_thread)
    content = content_of(3 * BLOCK)
    store = file_store(tmp_path / "out", "f", len(content))
    intake = FileIntake(store, 0, ignore_writes)
    for block in range(3):
        take_block(intake, content[block * BLOCK :][:BLOCK])
        assert intake.drained
    assert finish(store, content)


# ------------------------------------------------------------------------------------------------- speed of a store


ROOM = 400


def paces(steps: list[tuple[float, int, int]]) -> list[StorePace]:
    """Return the pace after each step: (time, pieces received, pieces written at that time)."""
    gauge, seen = StoreGauge(ROOM), []
    for now, received, wrote in steps:
        for _ in range(received):
            gauge.received(10, now)
        for _ in range(wrote):
            gauge.wrote(10, now)
        seen.append(gauge.pace(now))
    return seen


KEEPS_UP, BEHIND, SLOW = StorePace.KEEPS_UP, StorePace.BEHIND, StorePace.SLOW


def test_store_below_half_of_arrival_rate_is_slow_once_buffer_fills() -> None:
    """It writes at most 30 of 100 bytes per 0.1 s; a backlog of 300 of 400 bytes counts as full."""
    slowly = [(0.1 * step, 10, 3 if step % 2 else 2) for step in range(8)]
    assert paces(slowly) == [BEHIND] * 5 + [SLOW] * 3
    assert set(paces([(now, received // 3, wrote // 2) for now, received, wrote in slowly])) == {BEHIND}, (
        "there is room"
    )


def test_pace_is_judged_by_arrivals_while_buffer_had_room() -> None:
    """Once the buffer is full, arrivals are limited by writes."""
    seen = paces([(0.0, 40, 0), *((0.1 * step, 4, 4) for step in range(1, 12))])
    assert seen[:5] == [BEHIND] * 5
    assert seen[5] is SLOW
    assert seen[-1] is BEHIND, "the possible arrival rate is unknown"


def test_store_above_half_of_arrival_rate_is_behind_but_not_slow() -> None:
    assert set(paces([(0.1 * step, 10, 7) for step in range(30)])) == {BEHIND}


def test_store_that_caught_up_is_judged_afresh() -> None:
    slow = [(0.1 * step, 10, 2) for step in range(8)]
    assert paces([*slow, (0.9, 0, 64)])[-2:] == [SLOW, KEEPS_UP]
    assert paces([*slow, (0.9, 0, 64), (1.0, 39, 0)])[-1] is BEHIND


@pytest.mark.parametrize("begin", [0.1, 0.7])
@pytest.mark.parametrize("pause", [0.2, 1.2])
def test_single_pause_does_not_make_store_slow(begin: float, pause: float) -> None:
    """One piece arrives per 10 ms; the store writes two in that time, except in its pause."""
    steps, waiting = [], 0
    for step in range(300):
        now = 0.01 * step
        received = 1 if 10 * waiting < ROOM else 0
        waiting += received
        wrote = 0 if begin <= now < begin + pause else min(waiting, 2)
        waiting -= wrote
        steps.append((now, received, wrote))
    assert SLOW not in paces(steps)


def test_gauge_measures_duration_of_current_write() -> None:
    gauge = StoreGauge(ROOM)
    gauge.received(10, 0.0)
    gauge.received(10, 0.4)
    assert [gauge.writing(now) for now in (0.4, 0.8)] == [0.4, 0.8]
    gauge.wrote(10, 1.0)
    assert gauge.writing(1.1) == pytest.approx(0.1)
    assert gauge.writing(9.0) == pytest.approx(0.1), "after a long gap between calls, this process itself was stopped"
    gauge.wrote(10, 9.2)
    assert gauge.writing(9.3) == 0.0


def test_writer_measures_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tokens, done = [0.0], threading.Semaphore(0), threading.Semaphore(0)
    monkeypatch.setattr(store_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    writer = StoreWriter(lambda *_: tokens.acquire(), done.release, 200)
    for _ in range(20):
        writer.put(0, bytes(10))
    seen = []
    for _ in range(4):
        now[0] += 0.2
        assert writer.writing == pytest.approx(0.2)
        tokens.release()
        assert done.acquire(timeout=30)
        seen.append(writer.pace)
    assert seen == [BEHIND, BEHIND, SLOW, SLOW]
    tokens.release(1 << 10)
    eventually(lambda: writer.drained)
    assert (writer.pace, writer.writing) == (KEEPS_UP, 0.0)
    writer.close()


def test_close_drops_data_queued_behind_hanging_write() -> None:
    tokens, begun = threading.Semaphore(0), threading.Event()

    def hang(*_: object) -> None:
        begun.set()
        tokens.acquire()

    writer = StoreWriter(hang, ignore_writes, 200)
    for _ in range(20):
        writer.put(0, bytes(10))
    assert begun.wait(30)
    writer.close()
    assert len(writer.waiting()) == 1
    tokens.release()
    eventually(lambda: writer.drained)


@pytest.mark.parametrize(
    ("seconds", "computed", "waits", "preemptions", "slow"),
    [
        (0.03, 0.002, 1, 0, True),
        (0.01, 0.0, 1, 0, False),
        (0.03, 0.004, 1, 0, False),
        (0.3, 0.002, 0, 0, False),
        (0.19, 0.002, 1, 1, False),
        (0.21, 0.002, 1, 1, True),
    ],
)
def test_write_delayed_by_scheduler_does_not_count_as_slow(
    seconds: float, computed: float, waits: int, preemptions: int, slow: bool
) -> None:
    before = eager_writer._Usage(5.0, 2.0, 7, 5)
    after = eager_writer._Usage(5.0 + seconds, 2.0 + computed, 7 + waits, 5 + preemptions)
    assert eager_writer._is_slow(before, after) is slow


@pytest.mark.usefixtures("slow_stores")
def test_writer_thread_ends_once_store_is_fast_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_writer, "_CALM_WRITES", 3)
    content = content_of(8 * BLOCK)
    store = file_store(tmp_path / "out", "f", len(content))
    intake = FileIntake(store, 0, ignore_writes)
    writers = []
    for block in range(8):
        take_block(intake, content[block * BLOCK :][:BLOCK])
        eventually(lambda: intake.drained, "the received data to be written")
        writers.append(intake._writer._writer)
    assert len(set(writers)) > 1
    intake.close()
    assert finish(store, content)
    check_writers_ended()
