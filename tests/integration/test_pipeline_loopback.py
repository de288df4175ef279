"""Nodes as threads on real sockets: files, memory, commands, streams, TLS; interruption, exclusion, and every end."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from blast_transport.blocks.layout import Layout
from blast_transport.errors import StoreError
from blast_transport.pipeline import (
    Drained,
    Ended,
    Lost,
    Member,
    Outcome,
    PipelineLeg,
    PipelineSource,
    PipelineTimings,
    Progress,
)
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.source import Source, StreamSource, opened_file
from blast_transport.store.store import Store
from blast_transport.store.target import Buffer
from tests.support.certificates import Authority
from tests.support.pipeline_chain import (
    SEGMENT,
    SUITE,
    Chain,
    Paced,
    command_store,
    content_of,
    digests_of,
    file_store,
    finish,
    memory_store,
    open_descriptors,
)

BLOCK = Layout(None, SEGMENT).block_size


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    descriptors, threads = open_descriptors(), threading.active_count()
    yield
    deadline = time.monotonic() + 5
    while (open_descriptors(), threading.active_count()) != (descriptors, threads):
        assert time.monotonic() < deadline, [thread.name for thread in threading.enumerate()]
        time.sleep(0.02)


def start_source(chain: Chain, source: Source, first_block: int = 0) -> PipelineSource:
    running = PipelineSource(chain.leg(0, first_block), source, BLOCK, chain.events[0])
    chain.doors[0].admit = running.accept
    chain.running.append(running)
    running.start()
    return running


def until(condition: object, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.005)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 17, 40 * BLOCK])
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_every_node_holds_the_same_bytes(tmp_path: Path, size: int, kind: str) -> None:
    content = content_of(size)
    (tmp_path / "source").write_bytes(content)
    stores = [
        file_store(tmp_path / f"n{place}", "f", size) if kind == "file" else memory_store(size) for place in (1, 2, 3)
    ]
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        start_source(chain, source)
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.COMPLETE)] * 4
        assert chain.events[0].failed == chain.events[3].failed == {}
        assert all(Drained(size) in events.all for events in chain.events)
    for place, store in enumerate(stores, 1):
        assert finish(store, content)
        if kind == "file":
            assert (tmp_path / f"n{place}" / "f").read_bytes() == content
        else:
            assert isinstance(store.target, MemoryTarget)
            assert store.target.data == content


def test_the_sender_alone_knows_nobody(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x")
    with opened_file(tmp_path / "source") as source, Chain(0) as chain:
        start_source(chain, source)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.FAILED, "no node of the chain is left")


def test_nodes_that_hold_something_already_ask_for_the_rest(tmp_path: Path) -> None:
    content = content_of(30 * BLOCK + 5)
    (tmp_path / "source").write_bytes(content)
    stores = [memory_store(len(content)) for _ in range(4)]
    for store, held in zip(stores, (10, 0, 31, 20), strict=True):
        for block in range(held):
            store.put(block, content[block * BLOCK : (block + 1) * BLOCK])
    with opened_file(tmp_path / "source") as source, Chain(4) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        start_source(chain, source)
        chain.wait()
        assert chain.events[0].failed == {}
    assert all(finish(store, content) for store in stores)


def test_a_leg_from_the_middle_to_the_middle(tmp_path: Path) -> None:
    """As after light, and before it: other carriers bring the rest."""
    content = content_of(50 * BLOCK + 9)
    (tmp_path / "source").write_bytes(content)
    stores = [file_store(tmp_path / "n1", "f", len(content)), memory_store(len(content))]
    with opened_file(tmp_path / "source") as source, Chain(2) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store, first_block=5)
        running = PipelineSource(chain.leg(0, 5), source, BLOCK, chain.events[0])
        chain.running.append(running)
        running.stop_at(20)
        running.start()
        chain.wait()
        assert all(Drained(20 * BLOCK) in events.all for events in chain.events)
    for store in stores:
        assert list(store.held.ranges()) == [(5, 15)]
        for block in [*range(5), *range(20, 51)]:
            store.put(block, content[block * BLOCK : (block + 1) * BLOCK])
        assert finish(store, content)


def test_draining_ends_soon_and_at_a_block(tmp_path: Path) -> None:
    content = content_of(2000 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    stores = [file_store(tmp_path / f"n{place}", "f", len(content)) for place in (1, 2)]
    with opened_file(tmp_path / "source") as source, Chain(2) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = start_source(chain, Paced(source, 50e6))
        until(lambda: running.wake() or stores[1].position > 3)
        running.stop_at(0)
        chain.wait()
        (stop,) = (event.position for event in chain.events[0].all if isinstance(event, Drained))
        assert stop % BLOCK == 0
        assert 0 < stop < len(content)
    for store in stores:
        assert store.position == stop // BLOCK
        store.discard()


def test_a_stream_of_unknown_length(tmp_path: Path) -> None:
    content = content_of(12 * BLOCK + 100)
    reader, writer = os.pipe()
    stores = [memory_store(None), file_store(tmp_path / "n2", "f", None), memory_store(None)]
    with StreamSource(reader) as stream, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = start_source(chain, stream)
        stream.wake = running.wake
        for start in range(0, len(content), 50_000):
            os.write(writer, content[start : start + 50_000])
            time.sleep(0.005)
        os.close(writer)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
    os.close(reader)
    assert all(finish(store, content) for store in stores)
    assert (tmp_path / "n2" / "f").read_bytes() == content


def test_the_user_interrupts(tmp_path: Path) -> None:
    """Everybody quits and knows why, the report still comes, and nobody has failed."""
    reader, writer = os.pipe()
    stores = [memory_store(None) for _ in range(3)]
    with StreamSource(reader) as stream, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = start_source(chain, stream)
        stream.wake = running.wake
        os.write(writer, bytes(60_000))
        until(lambda: chain.running[2].leg and any(isinstance(event, Progress) for event in chain.events[3].all))
        running.quit("interrupted by the user")
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.QUIT, "interrupted by the user")] * 4
        assert chain.events[0].failed == {}
    os.close(writer)
    os.close(reader)


def test_commands_get_what_was_sent(tmp_path: Path) -> None:
    content = content_of(300 * BLOCK + 3)
    (tmp_path / "source").write_bytes(content)
    stores = [command_store(len(content), "dd", f"of={tmp_path}/out{place}", "status=none") for place in (1, 2, 3)]
    for store in stores:
        store.expect(0, digests_of(content))
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        start_source(chain, source)
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.COMPLETE)] * 4
    assert all(finish(store, content) for store in stores)
    assert all((tmp_path / f"out{place}").read_bytes() == content for place in (1, 2, 3))


def test_a_command_that_ends_early_costs_its_node_alone(tmp_path: Path) -> None:
    content = content_of(400 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    stores = [memory_store(len(content)), command_store(len(content), "true"), memory_store(len(content))]
    stores[1].expect(0, digests_of(content))
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        start_source(chain, source)
        chain.wait()
        ended = chain.events[2].ended
        assert ended is not None
        assert ended.outcome is Outcome.FAILED
        assert "takes no more data" in ended.reason
        assert chain.events[0].failed == {"n2": ended.reason}
    assert finish(stores[0], content)
    assert finish(stores[2], content)
    stores[1].discard()


class SlowTarget(MemoryTarget):
    """Memory that takes its time."""

    def __init__(self, rate: float) -> None:
        super().__init__("slow", 1 << 30)
        self._rate = rate

    def write(self, offset: int, data: Buffer) -> None:
        time.sleep(len(data) / self._rate)
        super().write(offset, data)


def test_a_node_with_a_slow_store_is_excluded_and_told(tmp_path: Path) -> None:
    content = content_of(1600 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    slow = Store(Layout(len(content), SEGMENT), SUITE, SlowTarget(1e6))
    stores = [memory_store(len(content)), slow, memory_store(len(content)), memory_store(len(content))]
    timings = PipelineTimings(slow=0.5)
    with opened_file(tmp_path / "source") as source, Chain(4, timings, slowest_rate=5e6) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        start_source(chain, source)
        until(lambda: chain.events[0].ended is not None)
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


class FullTarget(MemoryTarget):
    """A target whose room ends."""

    def write(self, offset: int, data: Buffer) -> None:
        if offset > 10 * BLOCK:
            raise StoreError("no space left")
        super().write(offset, data)


def test_a_full_store_is_skipped_with_its_reason(tmp_path: Path) -> None:
    content = content_of(100 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    full = Store(Layout(len(content), SEGMENT), SUITE, FullTarget("full", 1 << 30))
    stores = [full, memory_store(len(content)), full]
    stores[2] = Store(Layout(len(content), SEGMENT), SUITE, FullTarget("full", 1 << 30))
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        start_source(chain, source)
        chain.wait()
        assert chain.events[0].failed == {"n1": "no space left", "n3": "no space left"}
        assert chain.events[1].ended == Ended(Outcome.FAILED, "no space left")
        assert chain.events[2].ended == Ended(Outcome.COMPLETE)
    assert finish(stores[1], content)


def test_what_was_forgotten_is_fetched_from_the_source(tmp_path: Path) -> None:
    """n1 holds more than it can replay before n2 asks for the beginning."""
    content = content_of(900 * BLOCK)
    (tmp_path / "source").write_bytes(content)
    commands = [command_store(len(content), "dd", f"of={tmp_path}/out{place}", "status=none") for place in (1, 2)]
    for store in commands:
        store.expect(0, digests_of(content))
    for block in range(700):
        commands[0].put(block, content[block * BLOCK : (block + 1) * BLOCK])
    with opened_file(tmp_path / "source") as source, Chain(2) as chain:
        for place, store in enumerate(commands, 1):
            chain.node(place, store)
        start_source(chain, source)
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.COMPLETE)] * 3
    assert all(finish(store, content) for store in commands)
    assert all((tmp_path / f"out{place}").read_bytes() == content for place in (1, 2))


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
        until(lambda: stream.available >= 32 << 20)
        stream.release(500 * BLOCK)
        if not reachable:
            chain.doors[0].close()
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = start_source(chain, stream)
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
        start_source(chain, source)
        until(lambda: stores[1].position > 100)
        began = time.monotonic()
        chain.running[1].stop("no more time")
        assert chain.running[1].join(2)
        assert time.monotonic() - began < 2
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
        start_source(chain, source)
        until(lambda: chain.events[0].ended is not None)
        ended = chain.events[0].ended
        assert ended is not None
        assert ended.outcome is Outcome.FAILED
        assert "became shorter" in ended.reason


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    chain = (Member("n0", "", 0), Member("n1", "127.0.0.1", port), Member("n2", "127.0.0.1", port))
    leg = PipelineLeg(1, 1, bytes(16), 0, chain, 0, PipelineTimings(assembly=0.2))
    events: list[object] = []
    reader, writer = os.pipe()
    with StreamSource(reader) as stream:
        source = PipelineSource(leg, stream, BLOCK, events.append)
        source.start()
        assert source.join(5)
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
        running = start_source(chain, source)
        intruder, theirs = socket.socketpair()
        running.accept(theirs, "n1")
        intruder.sendall(secrets.token_bytes(1000))
        strangers.append(intruder)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
        assert chain.events[0].failed == {}
        for sock in strangers:
            sock.settimeout(2)
            with sock, suppress(ConnectionResetError):
                while sock.recv(4096):
                    pass
    assert all(finish(store, content) for store in stores)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_over_tls(tmp_path: Path, kind: str) -> None:
    """Sockets that encrypt are copied through, with the same bytes at the end."""
    authority = Authority(tmp_path / "ca", "ca")
    pair = authority.issue("/CN=node", "IP:127.0.0.1")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair.cert, pair.key)
    client = ssl.create_default_context(cafile=str(authority.cert))

    def connect(member: Member, timeout: float) -> socket.socket:
        plain = socket.create_connection((member.host, member.port), timeout)
        return client.wrap_socket(plain, server_hostname=member.host)

    content = content_of(300 * BLOCK + 11)
    (tmp_path / "source").write_bytes(content)
    size = len(content)
    stores = [
        file_store(tmp_path / f"n{place}", "f", size) if kind == "file" else memory_store(size) for place in (1, 2, 3)
    ]
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        chain.connect = connect
        for door in chain.doors:
            door.wrap = lambda sock: server.wrap_socket(sock, server_side=True)
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        running = PipelineSource(chain.leg(0), source, BLOCK, chain.events[0], connect)
        chain.running.append(running)
        running.start()
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
        assert chain.events[0].failed == {}
    assert all(finish(store, content) for store in stores)
