"""Nodes as threads on real sockets: files, memory, commands, streams, TLS, phases in pieces; and what ends them.

A listener for each node admits connections as an agent does.
"""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from blast_transport.agent.permissions import AllowedCommand
from blast_transport.base.engines import PYTHON
from blast_transport.blocks.layout import BlockLayout
from blast_transport.links.dialling import Dialer, dial
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.sources.source import Source, StreamSource, opened_file
from blast_transport.store.targets.command_target import CommandTarget
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.store.targets.target import Buffer
from blast_transport.transports.pipeline.connections import copy_pump
from blast_transport.transports.pipeline.node import PipelineNode
from blast_transport.transports.pipeline.protocol.messages import PipelineDecoder
from blast_transport.transports.pipeline.protocol.phase import (
    ChainMember,
    NodeLost,
    NodeOutcome,
    PhaseDrained,
    PhaseEnded,
    PhaseProgress,
    PipelineEvent,
    PipelinePhase,
    PipelineTimings,
    Reported,
)
from blast_transport.transports.pipeline.source import PipelineSource
from blast_transport.wire.joining import Join
from blast_transport.wire.pipeline_bounds import LARGEST_BUFFER
from tests.support.certificates import Authority
from tests.support.controller.store_faults import before_writes
from tests.support.transport.engines import BOTH, asked_engine, asking_for
from tests.support.transport.pipeline_chain import (
    SEGMENT,
    SUITE,
    content_of,
    digests_of,
    file_store,
    finish,
    memory_store,
    open_descriptors,
)
from tests.support.waiting import HANGING, at_rest, eventually

BLOCK = BlockLayout(None, SEGMENT).block_size


def read_join(sock: socket.socket) -> Join:
    """Return the Join that an agent reads before it passes a socket to a node."""
    decoder = PipelineDecoder()
    while True:
        data = sock.recv(decoder.needed)
        if not data:
            raise ConnectionError("closed before Join")
        message = decoder.feed(data)
        if message is not None:
            assert isinstance(message, Join)
            return message


class NodeListener:
    """Accepts connections, reads their Join, and passes them to `admit`."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.admit: Callable[[socket.socket, str], None] | None = None
        self.wrap: Callable[[socket.socket], socket.socket] = lambda sock: sock
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join(30)

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            try:
                sock.settimeout(30)
                sock = self.wrap(sock)
                name = read_join(sock).name
            except OSError:
                sock.close()
                continue
            if self.admit is None:
                sock.close()
            else:
                self.admit(sock, name)


class Events(list[PipelineEvent]):
    """Events that a node sends to its session."""

    __call__ = list.append

    @property
    def ended(self) -> PhaseEnded | None:
        return next((event for event in self if isinstance(event, PhaseEnded)), None)

    @property
    def failed(self) -> dict[str, str] | None:
        return next((event.failed for event in self if isinstance(event, Reported)), None)


class Chain:
    """The listeners of `nodes` receivers and a source, n0 being the source; a context manager."""

    def __init__(self, nodes: int, timings: PipelineTimings | None = None) -> None:
        self.listeners = [NodeListener() for _ in range(nodes + 1)]
        self.members = tuple(
            ChainMember(f"n{place}", "127.0.0.1", one.port) for place, one in enumerate(self.listeners)
        )
        # A busy machine may delay a thread for seconds.
        self.timings = timings or PipelineTimings(silence=HANGING, answer=HANGING)
        self.events = [Events() for _ in self.listeners]
        self.running: list[PipelineNode | PipelineSource] = []
        self.connect: Dialer = dial
        self.buffer = 0
        self._token = secrets.token_bytes(16)

    def __enter__(self) -> Chain:
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self.running:
            runner.stop("the test is over")
        for runner in self.running:
            assert runner.join(30), "a thread does not end"
        for listener in self.listeners:
            listener.close()

    def phase(self, place: int, first_block: int = 0) -> PipelinePhase:
        return PipelinePhase(7, 1, self._token, first_block, self.members, place, self.timings, buffer=self.buffer)

    def node(self, place: int, store: SessionStore, first_block: int = 0) -> PipelineNode:
        return self._start(PipelineNode(self.phase(place, first_block), store, self.events[place], self.connect))

    def source(self, source: Source) -> PipelineSource:
        engine = asked_engine()
        return self._start(PipelineSource(self.phase(0), source, BLOCK, self.events[0], self.connect, engine=engine))

    def _start(self, running: Any) -> Any:
        self.listeners[running.phase.index].admit = running.accept
        self.running.append(running)
        running.start()
        return running

    def all(self, stores: Sequence[BlockStore], source: Source) -> PipelineSource:
        """Start a node for each of these stores, and the source; return the source."""
        for place, store in enumerate(stores, 1):
            self.node(place, store)
        return self.source(source)

    def wait(self, seconds: float = HANGING) -> None:
        for runner in self.running:
            assert runner.join(seconds), f"{runner.phase.index} has not ended"


def command_store(size: int | None, *arguments: str) -> SessionStore:
    command = AllowedCommand("command", arguments, os.environ, Path("/tmp"))
    return SessionStore(BlockLayout(size, SEGMENT), SUITE, CommandTarget(command))


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    """Check that a test leaves no descriptor and no thread behind; earlier ones may end."""
    descriptors, threads = open_descriptors(), set(threading.enumerate())
    yield
    eventually(lambda: open_descriptors() <= descriptors, event="the end of every descriptor")
    eventually(lambda: set(threading.enumerate()) <= threads, event="the end of every thread")


@contextmanager
def file_with(folder: Path, content: bytes) -> Iterator[Source]:
    """Write a file with this content and yield its source."""
    (folder / "source").write_bytes(content)
    with opened_file(folder / "source") as source:
        yield source


@contextmanager
def piped(capacity: int = 8 << 20) -> Iterator[tuple[StreamSource, FileIO]]:
    """Yield the source of a stream and the write end of its pipe."""
    reader, descriptor = os.pipe()
    with os.fdopen(descriptor, "wb", buffering=0) as writer:
        try:
            with StreamSource(reader, capacity=capacity) as stream:
                yield stream, writer
        finally:
            os.close(reader)


def stores_of(kind: str, folder: Path, size: int) -> list[BlockStore]:
    """Return three stores of this kind."""
    return [
        file_store(folder / f"n{place}", "f", size) if kind == "file" else memory_store(size) for place in (1, 2, 3)
    ]


@pytest.mark.parametrize("size", [0, 1, BLOCK, 3 * BLOCK + 17])
@pytest.mark.parametrize("kind", ["file", "memory"])
@pytest.mark.parametrize("engine", BOTH)
def test_every_node_holds_the_same_bytes(tmp_path: Path, size: int, kind: str, engine: str) -> None:
    content = content_of(size)
    with asking_for(engine), file_with(tmp_path, content) as source, Chain(3) as chain:
        stores = stores_of(kind, tmp_path, size)
        chain.all(stores, source)
        chain.wait()
        assert [events.ended for events in chain.events] == [PhaseEnded(NodeOutcome.COMPLETE)] * 4
        assert chain.events[0].failed == chain.events[3].failed == {}
        assert all(PhaseDrained(size) in events for events in chain.events)
    for place, store in enumerate(stores, 1):
        assert finish(store, content)
        if kind == "file":
            assert (tmp_path / f"n{place}" / "f").read_bytes() == content
        else:
            assert isinstance(store.target, MemoryTarget)
            assert store.target.data == content


def test_nodes_with_partial_data_request_the_rest(tmp_path: Path) -> None:
    content = content_of(30 * BLOCK + 5)
    stores = [memory_store(len(content)) for _ in range(4)]
    for store, held in zip(stores, (10, 0, 31, 20), strict=True):
        for block in range(held):
            store.put(block, content[block * BLOCK : (block + 1) * BLOCK])
    with file_with(tmp_path, content) as source, Chain(4) as chain:
        chain.all(stores, source)
        chain.wait()
        assert chain.events[0].failed == {}
    assert all(finish(store, content) for store in stores)


@pytest.mark.parametrize("engine", BOTH)
def test_phase_sends_only_its_range_of_blocks(tmp_path: Path, engine: str) -> None:
    """Other transports deliver the blocks before and after the phase."""
    content = content_of(50 * BLOCK + 9)
    with asking_for(engine), file_with(tmp_path, content) as source, Chain(2) as chain:
        stores = [file_store(tmp_path / "n1", "f", len(content)), memory_store(len(content))]
        for place, store in enumerate(stores, 1):
            chain.node(place, store, first_block=5)
        running = PipelineSource(chain.phase(0, 5), source, BLOCK, chain.events[0])
        chain.running.append(running)
        running.stop_at(20)
        running.start()
        chain.wait()
        assert all(PhaseDrained(20 * BLOCK) in events for events in chain.events)
    for store in stores:
        assert list(store.held.ranges()) == [(5, 15)]
        for block in [*range(5), *range(20, 51)]:
            store.put(block, content[block * BLOCK : (block + 1) * BLOCK])
        assert finish(store, content)


def test_draining_stops_at_a_block_boundary() -> None:
    """Later data is left to other transports."""
    stores = [memory_store(None), memory_store(None)]
    with piped() as (stream, writer), Chain(2) as chain:
        running = chain.all(stores, stream)
        stream.wake = running.wake
        writer.write(bytes(5 * BLOCK + 100))
        eventually(lambda: stores[1].position > 3)
        running.stop_at(0)
        writer.write(bytes(5 * BLOCK))
        chain.wait()
        (stop,) = (event.position for event in chain.events[0] if isinstance(event, PhaseDrained))
        assert stop % BLOCK == 0
        assert 3 * BLOCK < stop < 10 * BLOCK
    for store in stores:
        assert store.position == stop // BLOCK
        store.discard()


def test_node_fetches_forgotten_data_from_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """n1 holds more than it can replay before n2 asks for the beginning."""
    monkeypatch.setattr(copy_pump, "Replay", partial(copy_pump.Replay, capacity=10 * BLOCK))
    content = content_of(90 * BLOCK)
    commands = [command_store(len(content), "dd", f"of={tmp_path}/out{place}", "status=none") for place in (1, 2)]
    for store in commands:
        store.expect(0, digests_of(content))
    for block in range(70):
        commands[0].put(block, content[block * BLOCK : (block + 1) * BLOCK])
    with file_with(tmp_path, content) as source, Chain(2) as chain:
        chain.all(commands, source)
        chain.wait()
        assert [events.ended for events in chain.events] == [PhaseEnded(NodeOutcome.COMPLETE)] * 3
    assert all(finish(store, content) for store in commands)
    assert all((tmp_path / f"out{place}").read_bytes() == content for place in (1, 2))


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_pipeline_over_tls_delivers_same_bytes(tmp_path: Path, kind: str) -> None:
    """Encrypted sockets are copied through user space, with the same bytes at the end."""
    authority = Authority(tmp_path / "ca", "ca")
    pair = authority.issue("/CN=node", "IP:127.0.0.1")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair.cert, pair.key)
    client = ssl.create_default_context(cafile=str(authority.cert))

    def connect(member: ChainMember, timeout: float) -> socket.socket:
        plain = socket.create_connection((member.host, member.port), timeout)
        return client.wrap_socket(plain, server_hostname=member.host)

    content = content_of(30 * BLOCK + 11)
    stores = stores_of(kind, tmp_path, len(content))
    with file_with(tmp_path, content) as source, Chain(3) as chain:
        chain.connect = connect
        for listener in chain.listeners:
            listener.wrap = lambda sock: server.wrap_socket(sock, server_side=True)
        chain.all(stores, source)
        chain.wait()
        assert chain.events[0].ended == PhaseEnded(NodeOutcome.COMPLETE)
        assert chain.events[0].failed == {}
    assert all(finish(store, content) for store in stores)


# ------------------------------------------------------------------------------------------- when it does not go well


def test_interrupted_pipeline_quits_without_failed_nodes() -> None:
    """Every node quits with the reason, the report still arrives, and no node has failed."""
    with piped() as (stream, writer), Chain(3) as chain:
        running = chain.all([memory_store(None) for _ in range(3)], stream)
        stream.wake = running.wake
        writer.write(bytes(60_000))
        eventually(lambda: any(isinstance(event, PhaseProgress) for event in chain.events[3]))
        running.quit("interrupted by the user")
        chain.wait()
        assert [events.ended for events in chain.events] == [
            PhaseEnded(NodeOutcome.QUIT, "interrupted by the user")
        ] * 4
        assert chain.events[0].failed == {}


def test_chain_waits_for_slow_command_at_the_end(tmp_path: Path) -> None:
    content = content_of(40 * BLOCK)
    late = command_store(len(content), "sh", "-c", f"sleep 1.5; cat > {tmp_path}/out")
    late.expect(0, digests_of(content))
    stores = [memory_store(len(content)), late, memory_store(len(content))]
    timings = PipelineTimings(silence=HANGING, answer=HANGING, slow=0.2)
    with file_with(tmp_path, content) as source, Chain(3, timings) as chain:
        chain.all(stores, source)
        chain.wait()
        assert [events.ended for events in chain.events] == [PhaseEnded(NodeOutcome.COMPLETE)] * 4
    assert all(finish(store, content) for store in stores)
    assert (tmp_path / "out").read_bytes() == content


def test_node_with_hanging_disk_is_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first write is slow, so that a thread does the next writes, which never end."""
    over, hanging, content = threading.Event(), tmp_path / "n2" / "f", content_of(40 * BLOCK)
    before_writes(monkeypatch, lambda place, offset, _: Path(place) == hanging and offset and over.wait(HANGING))
    monkeypatch.setattr("blast_transport.store.blocks.eager_writer._is_slow", lambda *_: True)
    with asking_for(PYTHON), piped() as (stream, writer), Chain(3) as chain:
        stores = [file_store(tmp_path / f"n{place}", "f", None) for place in (1, 2, 3)]
        try:
            running = chain.all(stores, stream)
            stream.wake = running.wake
            writer.write(content[: BLOCK + 1])
            eventually(lambda: all(store.position == 1 for store in stores))
            feed(os.dup(writer.fileno()), content[BLOCK + 1 :])
            writer.close()
            eventually(lambda: chain.events[0].ended is not None)
            assert chain.events[0].ended == PhaseEnded(NodeOutcome.COMPLETE)
            assert chain.events[0].failed == {"n2": "its store has accepted nothing for 1.5 s"}
        finally:
            over.set()
        chain.wait()
    assert [finish(store, content) for store in stores] == [True, False, True]


def test_data_released_by_source_ends_rest_of_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """n1 and n2 hold more than they can replay, and the source has released it."""
    monkeypatch.setattr(copy_pump, "Replay", partial(copy_pump.Replay, capacity=10 * BLOCK))
    content = content_of(90 * BLOCK)
    command = command_store(None, "dd", "of=/dev/null", "status=none")
    stores = [memory_store(None), command, memory_store(None), memory_store(None)]
    command.expect(0, digests_of(content))
    for block in range(70):
        for store in stores[:2]:
            store.put(block, content[block * BLOCK : (block + 1) * BLOCK])
    with piped(60 * BLOCK) as (stream, writer), Chain(4) as chain, ThreadPoolExecutor() as pool:
        feeding = pool.submit(feed, os.dup(writer.fileno()), content)
        eventually(lambda: stream.available >= 60 * BLOCK)
        stream.release(50 * BLOCK)
        writer.close()
        running = chain.all(stores, stream)
        stream.wake = running.wake
        chain.wait()
        feeding.result()
        assert chain.events[0].ended == PhaseEnded(NodeOutcome.COMPLETE)
        assert set(chain.events[0].failed or {}) == {"n3", "n4"}
        outcomes = [events.ended.outcome for events in chain.events if events.ended]
        assert outcomes == [NodeOutcome.COMPLETE] * 3 + [NodeOutcome.FORGOTTEN] * 2
    assert finish(stores[0], content)
    assert finish(command, content)
    for store in stores[2:]:
        store.discard()


def feed(writer: int, content: bytes) -> None:
    with os.fdopen(writer, "wb") as stream:
        stream.write(content)


def test_chain_bypasses_stopped_node() -> None:
    content = content_of(40 * BLOCK)
    stores = [memory_store(None) for _ in range(4)]
    with piped() as (stream, writer), Chain(4) as chain:
        running = chain.all(stores, stream)
        stream.wake = running.wake
        writer.write(content[: 10 * BLOCK])
        eventually(lambda: stores[1].position > 5)
        chain.running[1].stop("no more time")
        assert chain.running[1].join(30)
        feed(os.dup(writer.fileno()), content[10 * BLOCK :])
        writer.close()
        chain.wait()
        assert chain.events[2].ended == PhaseEnded(NodeOutcome.STOPPED, "no more time")
        assert chain.events[0].failed == {"n2": "no more time"}
        assert NodeLost("n2", "no more time") in chain.events[1]
    assert all(finish(store, content) for place, store in enumerate(stores, 1) if place != 2)


def test_source_fails_if_file_is_truncated(tmp_path: Path) -> None:
    """The file is truncated while it is sent: no node waits for the missing data."""
    with file_with(tmp_path, bytes(30 * BLOCK)) as source, Chain(2) as chain:
        os.truncate(tmp_path / "source", 10 * BLOCK)
        chain.all([memory_store(30 * BLOCK), memory_store(30 * BLOCK)], source)
        eventually(lambda: chain.events[0].ended is not None)
        ended = chain.events[0].ended
        assert ended is not None and ended.outcome is NodeOutcome.FAILED
        assert "became shorter" in ended.reason


def test_source_fails_if_no_node_is_reachable(tmp_path: Path) -> None:
    with file_with(tmp_path, b"x") as source, Chain(2) as chain:
        for listener in chain.listeners[1:]:
            listener.close()
        chain.source(source)
        chain.wait()
        assert chain.events[0].ended == PhaseEnded(NodeOutcome.FAILED, "no node of the chain is left")
        assert [event.name for event in chain.events[0] if isinstance(event, NodeLost)] == ["n1", "n2"]


def test_node_rejects_unexpected_neighbors_and_garbage(tmp_path: Path) -> None:
    content = content_of(50 * BLOCK)
    stores = [memory_store(len(content)) for _ in range(2)]
    with file_with(tmp_path, content) as source, Chain(2) as chain:
        node = chain.node(1, stores[0])
        chain.node(2, stores[1])
        rejected = [foreign_socket(node, name) for name in ("n1", "n2", "other")]
        # This one may join, and then sends garbage.
        rejected.append(foreign_socket(node, "n0", secrets.token_bytes(1000)))
        rejected.append(foreign_socket(chain.source(source), "n1", secrets.token_bytes(1000)))
        chain.wait()
        assert chain.events[0].ended == PhaseEnded(NodeOutcome.COMPLETE)
        assert chain.events[0].failed == {}
        for sock in rejected:
            sock.settimeout(30)
            with sock, suppress(ConnectionResetError):
                while sock.recv(4096):
                    pass
    assert all(finish(store, content) for store in stores)


def foreign_socket(runner: PipelineNode | PipelineSource, name: str, data: bytes = b"") -> socket.socket:
    ours, theirs = socket.socketpair()
    runner.accept(theirs, name)
    with suppress(BrokenPipeError):  # the node may have closed it already
        ours.sendall(data)
    return ours


@pytest.mark.parametrize("buffer", [0, LARGEST_BUFFER])
def test_buffer_bounds_how_far_a_node_runs_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffer: int) -> None:
    """The second one's store takes nothing, so that the first one stops a quarter of its buffer ahead of it."""
    monkeypatch.setattr(copy_pump, "_MAX_WAITING", 1 << 16)
    mb = 1 << 20
    size = 40 * mb
    with (tmp_path / "file").open("wb") as sparse:
        sparse.truncate(size)
    go, write = threading.Event(), MemoryTarget.write
    first, second = memory_store(size), memory_store(size)

    def stuck(target: MemoryTarget, offset: int, *pieces: Buffer) -> None:
        if target is second.target:
            go.wait(60)
        write(target, offset, *pieces)

    monkeypatch.setattr(MemoryTarget, "write", stuck)
    timings = PipelineTimings(silence=60.0, answer=60.0, slow=60.0)
    with Chain(2, timings) as chain, opened_file(tmp_path / "file") as file:
        chain.buffer = buffer
        last, intake = chain.node(2, second)._intake, chain.node(1, first)._intake
        chain.source(file)
        eventually(lambda: intake.position > mb)
        ahead = at_rest(lambda: intake.position - last.position, seconds=1.0)
        go.set()
        eventually(lambda: intake.position == size)
        kept = intake.replay.end - intake.replay.first_held
    assert ahead == pytest.approx(buffer / 4 or 8 * mb, abs=mb)
    assert kept == pytest.approx(min(size, buffer or 32 * mb), abs=mb)
