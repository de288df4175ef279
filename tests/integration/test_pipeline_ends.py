"""Nodes as threads on real sockets, when it does not go well: interruption, exclusion, full stores, strangers."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from blast_transport.base.errors import StoreError
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.pipeline.protocol.leg import (
    Ended,
    Lost,
    Member,
    Outcome,
    PipelineLeg,
    PipelineTimings,
    Progress,
)
from blast_transport.carriers.pipeline.source import PipelineSource
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.source import StreamSource, opened_file
from blast_transport.store.store import Store
from blast_transport.store.target import Buffer
from tests.support.pipeline_chain import (
    SEGMENT,
    SUITE,
    Chain,
    Events,
    Paced,
    command_store,
    content_of,
    digests_of,
    file_store,
    finish,
    memory_store,
    nothing_leaks,
)
from tests.support.store_faults import before_writes
from tests.support.waiting import eventually

BLOCK = Layout(None, SEGMENT).block_size


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    with nothing_leaks():
        yield


def test_the_sender_alone_knows_nobody(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x")
    with opened_file(tmp_path / "source") as source, Chain(0) as chain:
        chain.source(source)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.FAILED, "no node of the chain is left")


def test_the_user_interrupts(tmp_path: Path) -> None:
    """Everybody quits and knows why, the report still comes, and nobody has failed."""
    reader, writer = os.pipe()
    stores = [memory_store(None) for _ in range(3)]
    with StreamSource(reader) as stream, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = chain.source(stream)
        stream.wake = running.wake
        os.write(writer, bytes(60_000))
        eventually(lambda: chain.running[2].leg and any(isinstance(event, Progress) for event in chain.events[3].all))
        running.quit("interrupted by the user")
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.QUIT, "interrupted by the user")] * 4
        assert chain.events[0].failed == {}
    os.close(writer)
    os.close(reader)


def test_a_command_that_ends_early_costs_its_node_alone(tmp_path: Path) -> None:
    content = content_of(400 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    stores = [memory_store(len(content)), command_store(len(content), "true"), memory_store(len(content))]
    stores[1].expect(0, digests_of(content))
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(source)
        chain.wait()
        ended = chain.events[2].ended
        assert ended is not None
        assert ended.outcome is Outcome.FAILED
        assert "takes no more data" in ended.reason
        assert chain.events[0].failed == {"n2": ended.reason}
    assert finish(stores[0], content)
    assert finish(stores[2], content)
    stores[1].discard()


def test_a_command_is_waited_for_at_the_end_however_long_it_takes(tmp_path: Path) -> None:
    content = content_of(40 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    late = command_store(len(content), "sh", "-c", f"sleep 1.5; cat > {tmp_path}/out")
    late.expect(0, digests_of(content))
    stores = [memory_store(len(content)), late, memory_store(len(content))]
    with opened_file(tmp_path / "source") as source, Chain(3, PipelineTimings(slow=0.2)) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(source)
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.COMPLETE)] * 4
    assert finish(late, content)
    assert (tmp_path / "out").read_bytes() == content
    assert finish(stores[0], content)
    assert finish(stores[2], content)


class NarrowWay:
    """A relay before the port `to` that carries `rate` bytes a second on each connection."""

    def __init__(self, to: int, rate: float) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._to = to
        self._rate = rate
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        for sock in (self._listener, *self._ends):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(30)

    def _accept(self) -> None:
        # Whoever dials before there is a node is turned away, and dials again.
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                there = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [here, there]
                for one, other, rate in ((here, there, self._rate), (there, here, 1e9)):
                    self._threads.append(threading.Thread(target=self._carry, args=(one, other, rate), daemon=True))
                    self._threads[-1].start()

    def _carry(self, one: socket.socket, other: socket.socket, rate: float) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 14):
                time.sleep(len(data) / rate)  # a slow link
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)


class SlowTarget(MemoryTarget):
    """Memory that takes its time."""

    def __init__(self, rate: float) -> None:
        super().__init__("slow", 1 << 30)
        self._rate = rate

    def write(self, offset: int, *pieces: Buffer) -> None:
        time.sleep(sum(map(len, pieces)) / self._rate)  # a slow store
        super().write(offset, *pieces)


def test_a_node_with_a_slow_store_is_excluded_and_told(tmp_path: Path) -> None:
    content = content_of(1600 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    slow = Store(Layout(len(content), SEGMENT), SUITE, SlowTarget(1e6))
    stores = [memory_store(len(content)), slow, memory_store(len(content)), memory_store(len(content))]
    timings = PipelineTimings(slow=0.5)
    with opened_file(tmp_path / "source") as source, Chain(4, timings, slowest_rate=5e6) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(source)
        eventually(lambda: chain.events[0].ended is not None)
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
        failed = chain.events[0].failed
        assert failed is not None
        assert list(failed) == ["n2"]
        assert failed["n2"].startswith("excluded: ")
        chain.running[1].stop("served later")
        chain.wait()
        ended = chain.events[2].ended
        assert ended is not None
        assert ended.outcome in (Outcome.EXCLUDED, Outcome.STOPPED)
    assert all(finish(store, content) for store in stores if store is not slow)


def source_of_a_chain_with_a_slow_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slowly: Callable[[int], None]
) -> Events:
    """What the source of four nodes tells that write files; the second one calls `slowly` before it writes so much."""
    content = content_of(1600 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    slow = tmp_path / "n2" / "f"
    before_writes(monkeypatch, lambda place, _offset, size: slowly(size) if Path(place) == slow else None)
    stores = [file_store(tmp_path / f"n{place}", "f", len(content)) for place in range(1, 5)]
    assert Path(stores[1].target.place) == slow
    with opened_file(tmp_path / "source") as source, Chain(4) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(Paced(source, 40e6))
        eventually(lambda: chain.events[0].ended is not None)
        chain.running[1].stop("served later")
        chain.wait()
    for store in stores:
        assert finish(store, content) == (store is not stores[1])
    return chain.events[0]


def test_whose_disk_is_slow_is_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(size: int) -> None:
        time.sleep(size / 2e6)  # a slow disk

    source = source_of_a_chain_with_a_slow_file(tmp_path, monkeypatch, slowly)
    assert source.ended == Ended(Outcome.COMPLETE)
    # On a busy machine it may be found out by what it takes, and not by its own word.
    assert source.failed is not None
    assert list(source.failed) == ["n2"]
    assert source.failed["n2"].startswith("excluded: ")


def test_whose_disk_hangs_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes, over = itertools.count(), threading.Event()

    def slowly(size: int) -> None:
        if next(writes) < 2:
            time.sleep(0.03)  # slow enough to be written by a thread
        else:
            over.wait(30)

    try:
        source = source_of_a_chain_with_a_slow_file(tmp_path, monkeypatch, slowly)
    finally:
        over.set()
    assert source.ended == Ended(Outcome.COMPLETE)
    assert source.failed == {"n2": "its store has taken nothing for 1.5 s"}


class FullTarget(MemoryTarget):
    """A target whose room ends."""

    def write(self, offset: int, *pieces: Buffer) -> None:
        if offset > 10 * BLOCK:
            raise StoreError("no space left")
        super().write(offset, *pieces)


def test_a_full_store_is_skipped_with_its_reason(tmp_path: Path) -> None:
    content = content_of(100 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    full = Store(Layout(len(content), SEGMENT), SUITE, FullTarget("full", 1 << 30))
    stores = [full, memory_store(len(content)), full]
    stores[2] = Store(Layout(len(content), SEGMENT), SUITE, FullTarget("full", 1 << 30))
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(source)
        chain.wait()
        assert chain.events[0].failed == {"n1": "no space left", "n3": "no space left"}
        assert chain.events[1].ended == Ended(Outcome.FAILED, "no space left")
        assert chain.events[2].ended == Ended(Outcome.COMPLETE)
    assert finish(stores[1], content)


@pytest.mark.parametrize("reachable", [True, False])
def test_what_the_source_forgot_too_ends_the_rest_of_the_chain(tmp_path: Path, reachable: bool) -> None:
    content = content_of(900 * BLOCK)
    reader, writer = os.pipe()
    stores = [
        memory_store(None),
        command_store(None, "dd", "of=/dev/null", "status=none"),
        memory_store(None),
        memory_store(None),
    ]
    stores[1].expect(0, digests_of(content))
    for block in range(700):
        for store in stores[:2]:
            store.put(block, content[block * BLOCK : (block + 1) * BLOCK])
    feeding = threading.Thread(target=feed, args=(writer, content))
    with StreamSource(reader, capacity=32 << 20) as stream, Chain(4) as chain:
        feeding.start()
        eventually(lambda: stream.available >= 32 << 20)
        stream.release(500 * BLOCK)
        if not reachable:
            chain.doors[0].close()
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = chain.source(stream)
        stream.wake = running.wake
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
        assert set(chain.events[0].failed or {}) == {"n3", "n4"}
        outcomes = [events.ended.outcome for events in chain.events if events.ended]
        assert outcomes == [Outcome.COMPLETE] * 3 + [Outcome.FORGOTTEN] * 2
    feeding.join()
    os.close(reader)
    assert finish(stores[0], content)
    assert finish(stores[1], content)
    for store in stores[2:]:
        store.discard()


def feed(writer: int, content: bytes) -> None:
    with os.fdopen(writer, "wb") as stream:
        stream.write(content)


def test_stopping_a_node_in_the_middle(tmp_path: Path) -> None:
    content = content_of(1500 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    stores = [memory_store(len(content)) for _ in range(4)]
    with opened_file(tmp_path / "source") as source, Chain(4) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(source)
        eventually(lambda: stores[1].position > 100)
        chain.running[1].stop("no more time")
        assert chain.running[1].join(30)
        chain.wait()
        assert chain.events[2].ended == Ended(Outcome.STOPPED, "no more time")
        assert chain.events[0].failed == {"n2": "no more time"}
        assert Lost("n2", "no more time") in chain.events[1].all
    assert all(finish(store, content) for place, store in enumerate(stores, 1) if place != 2)


def test_the_sender_fails(tmp_path: Path) -> None:
    """The file becomes shorter while it is sent: nobody waits for what will not come."""
    path = tmp_path / "source"
    path.write_bytes(bytes(300 * BLOCK))
    with opened_file(path) as source, Chain(2) as chain:
        os.truncate(path, 10 * BLOCK)
        for place in (1, 2):
            chain.node(place, memory_store(300 * BLOCK))
        chain.source(source)
        eventually(lambda: chain.events[0].ended is not None)
        ended = chain.events[0].ended
        assert ended is not None
        assert ended.outcome is Outcome.FAILED
        assert "became shorter" in ended.reason


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    chain = (Member("n0", "", 0), Member("n1", "127.0.0.1", port), Member("n2", "127.0.0.1", port))
    leg = PipelineLeg(1, 1, bytes(16), 0, chain, 0, PipelineTimings())
    events: list[object] = []
    reader, writer = os.pipe()
    with StreamSource(reader) as stream:
        source = PipelineSource(leg, stream, BLOCK, events.append)
        source.start()
        assert source.join(30)
    os.close(reader)
    os.close(writer)
    assert events[-1] == Ended(Outcome.FAILED, "no node of the chain is left")
    assert [event.name for event in events if isinstance(event, Lost)] == ["n1", "n2"]


def test_strangers_and_garbage_are_turned_away(tmp_path: Path) -> None:
    content = content_of(500 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    stores = [memory_store(len(content)) for _ in range(2)]
    with opened_file(tmp_path / "source") as source, Chain(2) as chain:
        node = chain.node(1, stores[0])
        chain.node(2, stores[1])
        strangers = []
        for name in ("n1", "n2", "somebody"):
            ours, theirs = socket.socketpair()
            node.accept(theirs, name)
            strangers.append(ours)
        # One that may join, and then talks nonsense.
        garbage, theirs = socket.socketpair()
        node.accept(theirs, "n0")
        garbage.sendall(secrets.token_bytes(1000))
        strangers.append(garbage)
        running = chain.source(source)
        intruder, theirs = socket.socketpair()
        running.accept(theirs, "n1")
        intruder.sendall(secrets.token_bytes(1000))
        strangers.append(intruder)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
        assert chain.events[0].failed == {}
        for sock in strangers:
            sock.settimeout(30)
            with sock, suppress(ConnectionResetError):
                while sock.recv(4096):
                    pass
    assert all(finish(store, content) for store in stores)


def test_a_rack_of_hosts_that_answer_nothing_is_waited_for_together(tmp_path: Path) -> None:
    content = content_of(20 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    timings = PipelineTimings(answer=2.0)

    def connect(member: Member, timeout: float) -> socket.socket:
        if member.name in {f"n{place}" for place in range(2, 10)}:
            time.sleep(timeout)  # hosts that answer nothing
            raise TimeoutError("timed out")
        return socket.create_connection((member.host, member.port), timeout)

    stores = {1: memory_store(len(content)), 10: memory_store(len(content))}
    with opened_file(tmp_path / "source") as source, Chain(10, timings) as chain:
        chain.connect = connect
        for place, store in stores.items():
            chain.node(place, store)
        began = time.monotonic()
        chain.source(source)
        chain.wait()
        assert list(chain.events[0].failed or {}) == [f"n{place}" for place in range(2, 10)]
        assert time.monotonic() - began < 8 * timings.answer
    assert all(finish(store, content) for store in stores.values())


def test_nobody_is_excluded_for_a_way_that_is_slow(tmp_path: Path) -> None:
    """All behind it would be, one after the other, and then ask the source for everything."""
    content = content_of(24 << 20)
    (tmp_path / "source").write_bytes(content)
    timings = PipelineTimings(silence=3.0, answer=3.0, slow=0.5)
    stores = [file_store(tmp_path / f"n{place}", "f", len(content)) for place in (1, 2, 3)]
    with opened_file(tmp_path / "source") as source, Chain(3, timings) as chain:
        way = NarrowWay(chain.doors[2].port, 5e6)
        chain.members = (*chain.members[:2], Member("n2", "127.0.0.1", way.port), chain.members[3])
        try:
            for place, store in enumerate(stores, 1):
                chain.node(place, store)
            chain.source(Paced(source, 15e6))
            chain.wait()
            assert chain.events[0].failed == {}
        finally:
            way.close()
    assert all(finish(store, content) for store in stores)
