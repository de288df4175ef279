"""Data from a socket into a file: what can be sent on, and what the store holds, after every turn."""

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
from blast_transport.transports.pipeline.connections.file_pump import FileIntake, FileOutlet, WrittenOutlet
from tests.support.pipeline_chain import SEGMENT, content_of, file_store, finish
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("every_engine")

BLOCK = BlockLayout(None, SEGMENT).block_size


def nobody() -> None:
    """Nobody waits for what is written."""


def no_writer_is_left() -> None:
    eventually(lambda: not any(thread.name == "store writer" for thread in threading.enumerate()))


@pytest.fixture
def every_store_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_after_a_turn_all_blocks_that_came_are_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, seed: int, slow: bool
) -> None:
    """At once, or, where a store was once slow, as soon as it has taken them."""
    monkeypatch.setattr(eager_writer, "_is_slow", lambda *_: slow)
    content, draw = content_of(size), random.Random(seed)
    store = file_store(tmp_path / "out", "f", size)
    assert store.descriptor is not None
    intake = FileIntake(store, 0, nobody)
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
            eventually(lambda: intake.drained, "what came to be written")
            assert store.position == -(-intake.servable // BLOCK)
            file.seek(0)
            assert file.read() == content[: intake.servable]
    intake.complete(True)
    eventually(lambda: intake.drained, "what came to be written")
    intake.close()
    assert finish(store, content)
    assert (tmp_path / "out" / "f").read_bytes() == content


def test_nothing_comes_after_the_end(tmp_path: Path) -> None:
    store = file_store(tmp_path / "out", "f", 10)
    intake = FileIntake(store, 0, nobody)
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


@pytest.mark.usefixtures("every_store_is_slow")
def test_what_a_slow_store_has_not_taken_goes_on_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 20 * BLOCK + 5
    content, draw = content_of(size), random.Random(5)
    store = file_store(tmp_path / "out", "f", size)
    assert store.descriptor is not None
    intake = FileIntake(store, 0, nobody)
    outlet = WrittenOutlet(FileOutlet(store.descriptor), intake)
    down, successor = socket.socketpair()
    down.setblocking(False)
    with down, successor, held_writes(store, monkeypatch, 3) as tokens:
        for begin in range(0, size, BLOCK):
            take_block(intake, content[begin : begin + BLOCK])
        eventually(lambda: intake.unwritten()[0][0] == 3 * BLOCK, "three rows to be written")
        assert (intake.servable, intake.drained) == (size, False)
        for written in itertools.count(3):
            # From anywhere, also what lies across the end of what is written.
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
                "one more to be written",
            )
    intake.complete(True)
    intake.close()
    assert finish(store, content)


@pytest.mark.usefixtures("every_store_is_slow")
def test_a_full_memory_takes_no_more_until_the_store_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pump, "_MAX_WAITING", 4 * BLOCK)
    content = content_of(8 * BLOCK)
    store = file_store(tmp_path / "out", "f", len(content))
    intake = FileIntake(store, 0, nobody)
    with held_writes(store, monkeypatch, 1) as tokens:
        for block in range(5):
            assert intake.ready
            take_block(intake, content[block * BLOCK :][:BLOCK])
        assert not intake.ready
        tokens.release()
        eventually(lambda: intake.ready, "room for one more")
    intake.close()
    store.discard()


@pytest.mark.usefixtures("every_store_is_slow")
@pytest.mark.parametrize("error", [StoreError("No space left"), ValueError("a bug")])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_store_that_takes_no_more_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """And nothing is sent on from where it should be in the file."""
    store = file_store(tmp_path / "out", "f", 3 * BLOCK)
    assert store.descriptor is not None
    intake = FileIntake(store, 0, nobody)
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
    no_writer_is_left()
    intake.close()
    store.discard()


@pytest.mark.usefixtures("every_store_is_slow")
def test_without_another_thread_this_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object) -> None:
        raise NoThreadError("no more")

    monkeypatch.setattr(threads, "start", no_thread)
    content = content_of(3 * BLOCK)
    store = file_store(tmp_path / "out", "f", len(content))
    intake = FileIntake(store, 0, nobody)
    for block in range(3):
        take_block(intake, content[block * BLOCK :][:BLOCK])
        assert intake.drained
    assert finish(store, content)


# ------------------------------------------------------------------------------------------------- what a store is


ROOM = 400


def paces(steps: list[tuple[float, int, int]]) -> list[StorePace]:
    """How a store looks after each step: (time, pieces that came, pieces that were written at that time)."""
    gauge, seen = StoreGauge(ROOM), []
    for now, came, wrote in steps:
        for _ in range(came):
            gauge.received(10, now)
        for _ in range(wrote):
            gauge.wrote(10, now)
        seen.append(gauge.pace(now))
    return seen


KEEPS_UP, BEHIND, SLOW = StorePace.KEEPS_UP, StorePace.BEHIND, StorePace.SLOW


def test_one_that_takes_less_than_half_is_slow_when_there_is_little_room_left() -> None:
    """Of 100 bytes that come in a tenth of a second it takes 30 at most; 300 of 400 bytes are little room."""
    slowly = [(0.1 * turn, 10, 3 if turn % 2 else 2) for turn in range(8)]
    assert paces(slowly) == [BEHIND] * 5 + [SLOW] * 3
    assert set(paces([(now, came // 3, wrote // 2) for now, came, wrote in slowly])) == {BEHIND}, "there is room"


def test_it_is_judged_by_what_came_while_there_was_room() -> None:
    """Afterwards no more can come than is written."""
    seen = paces([(0.0, 40, 0), *((0.1 * turn, 4, 4) for turn in range(1, 12))])
    assert seen[:5] == [BEHIND] * 5
    assert seen[5] is SLOW
    assert seen[-1] is BEHIND, "nothing is known of what might come"


def test_one_that_takes_more_than_half_is_behind_and_not_slow() -> None:
    assert set(paces([(0.1 * turn, 10, 7) for turn in range(30)])) == {BEHIND}


def test_who_has_caught_up_is_as_new() -> None:
    slow = [(0.1 * turn, 10, 2) for turn in range(8)]
    assert paces([*slow, (0.9, 0, 64)])[-2:] == [SLOW, KEEPS_UP]
    assert paces([*slow, (0.9, 0, 64), (1.0, 39, 0)])[-1] is BEHIND


@pytest.mark.parametrize("begin", [0.1, 0.7])
@pytest.mark.parametrize("pause", [0.2, 1.2])
def test_one_pause_makes_no_store_slow(begin: float, pause: float) -> None:
    """A piece comes in a hundredth of a second; the store takes two in that time, but for its pause."""
    steps, waiting = [], 0
    for turn in range(300):
        now = 0.01 * turn
        came = 1 if 10 * waiting < ROOM else 0
        waiting += came
        wrote = 0 if begin <= now < begin + pause else min(waiting, 2)
        waiting -= wrote
        steps.append((now, came, wrote))
    assert SLOW not in paces(steps)


def test_a_gauge_tells_for_how_long_one_piece_is_written() -> None:
    gauge = StoreGauge(ROOM)
    gauge.received(10, 0.0)
    gauge.received(10, 0.4)
    assert [gauge.writing(now) for now in (0.4, 0.8)] == [0.4, 0.8]
    gauge.wrote(10, 1.0)
    assert gauge.writing(1.1) == pytest.approx(0.1)
    assert gauge.writing(9.0) == pytest.approx(0.1), "who did not ask for so long was stopped himself"
    gauge.wrote(10, 9.2)
    assert gauge.writing(9.3) == 0.0


def test_a_writer_counts_what_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_waits_behind_a_write_that_hangs_is_let_go_with_it() -> None:
    tokens, begun = threading.Semaphore(0), threading.Event()

    def hang(*_: object) -> None:
        begun.set()
        tokens.acquire()

    writer = StoreWriter(hang, nobody, 200)
    for _ in range(20):
        writer.put(0, bytes(10))
    assert begun.wait(30)
    writer.close()
    assert len(writer.waiting()) == 1
    tokens.release()
    eventually(lambda: writer.drained)


@pytest.mark.parametrize(
    ("seconds", "computed", "waits", "slow"),
    [(0.03, 0.002, 1, True), (0.01, 0.0, 1, False), (0.03, 0.004, 1, False), (0.3, 0.002, 0, False)],
)
def test_who_is_only_kept_from_the_processor_has_no_slow_store(
    seconds: float, computed: float, waits: int, slow: bool
) -> None:
    before = eager_writer._Usage(5.0, 2.0, 7)
    assert eager_writer._is_slow(before, eager_writer._Usage(5.0 + seconds, 2.0 + computed, 7 + waits)) is slow


@pytest.mark.usefixtures("every_store_is_slow")
def test_whose_store_is_fast_again_needs_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_writer, "_CALM_WRITES", 3)
    content = content_of(8 * BLOCK)
    store = file_store(tmp_path / "out", "f", len(content))
    intake = FileIntake(store, 0, nobody)
    writers = []
    for block in range(8):
        take_block(intake, content[block * BLOCK :][:BLOCK])
        eventually(lambda: intake.drained, "what came to be written")
        writers.append(intake._writer._writer)
    assert len(set(writers)) > 1
    intake.close()
    assert finish(store, content)
    no_writer_is_left()
