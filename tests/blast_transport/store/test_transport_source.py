"""Sources of a sender: files that may change, and streams."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.errors import ForgottenError, SourceChangedError, WrongInputError
from blast_transport.store.sources.source import FileSource, StreamSource, opened_file
from tests.support.waiting import eventually, for_a_while

TIMEOUT = 30.0


@contextmanager
def streaming(capacity: int = 1000, wake: Callable[[], None] = lambda: None) -> Iterator[tuple[FileIO, StreamSource]]:
    """Yield the writing end of a pipe, and the source that reads the other end."""
    reader, descriptor = os.pipe()
    # Close each descriptor once: a second os.close() may close one that another thread opened meanwhile.
    with os.fdopen(descriptor, "wb", buffering=0) as writer:
        try:
            with StreamSource(reader, capacity, wake) as source:
                yield writer, source
        finally:
            os.close(reader)


def read(source: StreamSource | FileSource, offset: int, count: int) -> bytes:
    view = memoryview(bytearray(count))
    return bytes(view[: source.read(offset, view)])


def test_file_is_read_at_any_offset_up_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with opened_file(path) as source:
        assert (source.size, source.available) == (10, 10)
        assert read(source, 2, 4) == b"2345"
        assert read(source, 8, 4) == b"89"
        assert read(source, 12, 4) == b""
        source.release(10)
        assert read(source, 0, 10) == b"0123456789"
        source.check_unchanged()


def test_truncated_file_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    with opened_file(path) as source:
        os.truncate(path, 30)
        with pytest.raises(SourceChangedError, match="it has 30 bytes and had 100"):
            read(source, 20, 20)
        with pytest.raises(SourceChangedError, match="changed while"):
            source.check_unchanged()


def test_written_file_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    os.utime(path, ns=(1, 1))
    with opened_file(path) as source:
        path.write_bytes(bytes(99) + b"x")
        with pytest.raises(SourceChangedError):
            source.check_unchanged()


def test_content_identity_depends_on_file_and_time(tmp_path: Path) -> None:
    def content(path: Path) -> str:
        with opened_file(path) as source:
            return source.content

    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"same")
    other.write_bytes(b"same")
    (tmp_path / "link").symlink_to(one)
    before = content(one)
    assert before == content(one) == content(tmp_path / "link") != content(other)
    os.utime(one, ns=(1, 1))
    assert content(one) != before


@pytest.mark.parametrize("path", ["/nonexistent", "/dev/null", "/tmp"])
def test_path_that_is_no_file_is_rejected(path: str) -> None:
    with pytest.raises(WrongInputError, match=path), opened_file(Path(path)):
        pass


def test_fifo_is_rejected_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WrongInputError, match="not a regular file"), opened_file(tmp_path / "pipe"):
        pass


def test_stream_has_no_size_until_it_ends() -> None:
    with streaming() as (writer, source):
        assert source.size is None
        writer.write(b"01234")
        assert read(source, 1, 4) == b"1234"
        assert (source.size, source.available) == (None, 5)
        writer.write(b"56")
        writer.close()
        assert read(source, 3, 100) == b"3456"
        assert (source.size, source.available) == (7, 7)
        assert read(source, 7, 100) == b""


def test_full_ring_pauses_reading_until_release() -> None:
    with streaming(capacity=100) as (writer, source):
        writer.write(bytes(range(250)))
        eventually(lambda: source.available == 100)
        for_a_while(lambda: source.available == 100, "a full ring")
        assert read(source, 0, 100) == bytes(range(100))
        source.release(70)
        eventually(lambda: source.available == 170)
        assert read(source, 70, 100) == bytes(range(70, 170))
        with pytest.raises(ForgottenError) as caught:
            read(source, 69, 1)
        assert caught.value.first_held == 70
        source.release(10)
        source.release(1 << 40)
        eventually(lambda: source.available == 250)
        assert read(source, 170, 80) == bytes(range(170, 250))


def test_released_data_stays_until_overwritten() -> None:
    with streaming(capacity=100) as (writer, source):
        writer.write(bytes(range(100)))
        eventually(lambda: source.available == 100)
        source.release(100)
        assert read(source, 0, 100) == bytes(range(100)), "a receiver that fell behind can still read it"
        writer.write(b"x")
        eventually(lambda: source.available == 101)
        with pytest.raises(ForgottenError):
            read(source, 0, 1)
        assert read(source, 100, 1) == b"x"


def test_close_ends_waiting_stream_thread() -> None:
    for filling in (b"", bytes(500)):
        reader, writer = os.pipe()
        os.write(writer, filling) if filling else None
        source = StreamSource(reader, 100)
        with source:
            pass
        assert not source._thread.is_alive()
        os.close(reader)
        os.close(writer)


def test_close_ends_waiting_reader() -> None:
    found: list[str] = []

    def wait() -> None:
        with pytest.raises(SourceChangedError) as caught:
            read(source, 0, 10)
        found.append(str(caught.value))

    with streaming() as (_, source):
        reader = threading.Thread(target=wait)
        reader.start()
        time.sleep(0.02)  # the reader should wait by now; if it starts later, the result is the same
    reader.join(TIMEOUT)
    assert found == ["the stream cannot be read: it was closed before its end"]


def test_unreadable_stream_raises_error(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with StreamSource(descriptor) as source, pytest.raises(SourceChangedError, match="directory"):
            read(source, 0, 1)
    finally:
        os.close(descriptor)


def test_broken_stream_has_no_size() -> None:
    """All received data was read, so no further read would detect the failure."""
    ours, theirs = socket.socketpair()
    with ours, theirs, StreamSource(ours.fileno()) as source:
        theirs.sendall(b"half")
        assert read(source, 0, 4) == b"half" and source.size is None
        # Closing a socket with unread data resets the connection.
        ours.sendall(b"never read")
        theirs.close()
        with pytest.raises(SourceChangedError, match="reset by peer"):
            eventually(lambda: source.size is not None)


def test_stream_ends_once_end_is_confirmed() -> None:
    ends: queue.Queue[Callable[[], None]] = queue.Queue()
    woken = threading.Semaphore(0)
    with streaming(wake=woken.release) as (writer, source):
        source.at_end = ends.put
        writer.write(b"x")
        writer.close()
        end = ends.get(timeout=TIMEOUT)
        assert source.size is None and source.available == 1
        assert woken.acquire(timeout=TIMEOUT)
        end()
        assert woken.acquire(timeout=TIMEOUT)
        assert source.size == 1
    assert source.size == 1, "closing keeps the size"


def test_stream_is_read_with_descriptor_above_1023() -> None:
    """select() does not support such descriptors."""
    many = [os.open("/dev/null", os.O_RDONLY) for _ in range(1030)]
    try:
        with streaming() as (writer, source):
            writer.write(b"x")
            assert read(source, 0, 1) == b"x"
    finally:
        for descriptor in many:
            os.close(descriptor)


@settings(max_examples=40)
@given(
    st.integers(0, 3000),
    st.integers(64, 300),
    st.lists(st.integers(1, 64), min_size=1, max_size=10),
    st.integers(0, 200),
)
def test_stream_delivers_all_data_for_any_sizes(size: int, capacity: int, reads: list[int], keep: int) -> None:
    content = os.urandom(size)
    keep = min(keep, capacity - 64)
    with streaming(capacity) as (writer, source):

        def produce() -> None:
            rest = content
            while rest:
                rest = rest[writer.write(rest) :]
            writer.close()

        producer = threading.Thread(target=produce)
        producer.start()
        found, number = b"", 0
        while piece := read(source, len(found), reads[number % len(reads)]):
            found, number = found + piece, number + 1
            source.release(len(found) - keep)
            again = max(0, len(found) - keep)
            assert read(source, again, len(found) - again) == content[again : len(found)]
        producer.join(TIMEOUT)
    assert found == content and source.size == size
