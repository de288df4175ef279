"""Nodes as threads on real sockets, when all goes well: files, memory, commands, streams, TLS, legs in pieces."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_transport.blocks.layout import Layout
from blast_transport.carriers.pipeline.protocol.leg import Drained, Ended, Member, Outcome
from blast_transport.carriers.pipeline.source import PipelineSource
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.source import StreamSource, opened_file
from tests.support.certificates import Authority
from tests.support.pipeline_chain import (
    SEGMENT,
    Chain,
    Paced,
    command_store,
    content_of,
    digests_of,
    file_store,
    finish,
    memory_store,
    nothing_leaks,
)
from tests.support.waiting import eventually

BLOCK = Layout(None, SEGMENT).block_size


pytestmark = pytest.mark.usefixtures("every_engine")


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    with nothing_leaks():
        yield


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
        chain.source(source)
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
        chain.source(source)
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
        running = chain.source(Paced(source, 50e6))
        eventually(lambda: running.wake() or stores[1].position > 3)
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
        running = chain.source(stream)
        stream.wake = running.wake
        for start in range(0, len(content), 50_000):
            os.write(writer, content[start : start + 50_000])
            time.sleep(0.005)  # a slow producer
        os.close(writer)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
    os.close(reader)
    assert all(finish(store, content) for store in stores)
    assert (tmp_path / "n2" / "f").read_bytes() == content


def test_commands_get_what_was_sent(tmp_path: Path) -> None:
    content = content_of(300 * BLOCK + 3)
    (tmp_path / "source").write_bytes(content)
    stores = [command_store(len(content), "dd", f"of={tmp_path}/out{place}", "status=none") for place in (1, 2, 3)]
    for store in stores:
        store.expect(0, digests_of(content))
    with opened_file(tmp_path / "source") as source, Chain(3) as chain:
        for place, store in enumerate(stores, 1):
            chain.node(place, store)
        chain.source(source)
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.COMPLETE)] * 4
    assert all(finish(store, content) for store in stores)
    assert all((tmp_path / f"out{place}").read_bytes() == content for place in (1, 2, 3))


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
        chain.source(source)
        chain.wait()
        assert [events.ended for events in chain.events] == [Ended(Outcome.COMPLETE)] * 3
    assert all(finish(store, content) for store in commands)
    assert all((tmp_path / f"out{place}").read_bytes() == content for place in (1, 2))


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
        chain.source(source)
        chain.wait()
        assert chain.events[0].ended == Ended(Outcome.COMPLETE)
        assert chain.events[0].failed == {}
    assert all(finish(store, content) for store in stores)
