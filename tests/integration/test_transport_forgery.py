"""Who is not the sender cannot make a receiver keep other bytes, or report them: on the light, in a chain, at the end.

The forged blocks have the XXH3 of the real ones, so that this file also shows why that digest went.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_transport.blocks.layout import Layout
from blast_transport.carriers.choices import Chain, Light
from blast_transport.carriers.optical.interface import open_group_socket, open_sender_socket
from blast_transport.carriers.pipeline import node
from blast_transport.carriers.pipeline.connections.compiled_pump import open_outlet
from blast_transport.carriers.pipeline.connections.file_pump import FileOutlet
from blast_transport.carriers.pipeline.node import PipelineNode
from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg
from blast_transport.carriers.pipeline.protocol.messages import Data, End, Report, encode
from blast_transport.session.receiver_core import ReceiverCore, ReceiverState
from blast_transport.session.route import Route
from blast_transport.store import assembly
from blast_transport.store.assembly import Assembly
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import EndOfData, Hello
from tests.support.pipeline_chain import SEGMENT, SUITE, content_of, digests_of, file_store
from tests.support.transport_hosts import LOOPBACK, PATIENCE, agent, agents, datagram, light, sender_to
from tests.support.waiting import eventually
from tests.support.xxh3_preimage import second_preimage

pytestmark = pytest.mark.usefixtures("every_engine")

SIZE = 6 << 20
LAYOUT = Layout(SIZE, 1456)
FOREIGN = (40, 50, 60, 70)
"""Blocks that are forged."""


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(77).randbytes(SIZE)


@pytest.fixture(scope="module")
def forged(content: bytes) -> bytes:
    """The same file with four blocks of somebody else's."""
    other, result = random.Random(78).randbytes(LAYOUT.block_size), bytearray(content)
    for block in FOREIGN:
        begin = LAYOUT.offset(block)
        mine = second_preimage(content[begin : begin + LAYOUT.block_size], other)
        result[begin : begin + LAYOUT.block_size] = mine
    return bytes(result)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content.bin"
    path.write_bytes(content)
    return path


class ForgingLight:
    """Opens group sockets on whose way somebody puts his own blocks in the place of the sender's, each of them once."""

    def __init__(self, forged: bytes) -> None:
        self.forged = forged
        self.opened: list[_ForgingSocket] = []

    def __call__(self, interface_address: str, group: str, port: int) -> socket.socket:
        sock = _ForgingSocket(fileno=open_group_socket(interface_address, group, port).detach())
        sock.forged, sock.left = self.forged, {LAYOUT.block_segments * b + i for b in FOREIGN for i in range(44)}
        self.opened.append(sock)
        return sock


class _ForgingSocket(socket.socket):
    forged: bytes
    left: set[int]

    def recvmsg_into(self, buffers: Sequence[memoryview], *_: int) -> tuple[int, list[object], int, object]:  # type: ignore[override]
        length, _ancillary, flags, source = super().recvmsg_into(buffers)
        datagrams = -(-length // (HEADER.size + LAYOUT.segment_size))
        for header, payload in zip(buffers[: 2 * datagrams : 2], buffers[1 : 2 * datagrams : 2], strict=True):
            segment = HEADER.unpack(header)[2]
            if segment in self.left:
                self.left.discard(segment)
                payload[:] = self.forged[segment * LAYOUT.segment_size :][: len(payload)]
        return length, [], flags, source


def test_light_that_somebody_changes_brings_no_foreign_block(
    tmp_path: Path, file: Path, content: bytes, forged: bytes
) -> None:
    way = ForgingLight(forged)
    with agents(tmp_path, 2, open_group=way) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(light(100e6)))
        assert len(way.opened) == 2
        for one in there:
            assert one.files() == {file.name: content}
            assert one.received().refused > 0
        assert result.complete == 2


FORGER = """
import sys, time
from pathlib import Path
from blast_transport.carriers.optical.interface import open_group_socket, open_sender_socket
from blast_transport.wire.datagram import HEADER
address, group, port, file, size, *blocks = sys.argv[1:]
data, size = Path(file).read_bytes(), int(size)
with open_group_socket(address, group, int(port)) as ear, open_sender_socket(address, group, int(port)) as mouth:
    ear.setblocking(True)
    print("ready", flush=True)
    session = HEADER.unpack_from(ear.recv(65536))[0]
    for _ in range(3):
        for block in map(int, blocks):
            for segment in range(block * 44, block * 44 + 44):
                mouth.send(HEADER.pack(session, 0, segment) + data[segment * size : segment * size + size])
    print("done", flush=True)
    sys.stdin.read()
"""


@contextmanager
def forger(way: Light, forged: Path) -> Iterator[subprocess.Popen[str]]:
    """A process beside the sender that knows the file and the group, and sends its blocks as soon as it hears one."""
    words = [LOOPBACK, way.group, str(way.port), str(forged), str(LAYOUT.segment_size), *map(str, FOREIGN)]
    command = [sys.executable, "-c", FORGER, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
            assert process.stdout.readline() == "done\n"
        finally:
            process.kill()


def test_a_third_process_that_knows_the_file_cannot_bring_its_blocks(
    tmp_path: Path, file: Path, content: bytes, forged: bytes
) -> None:
    path, way = tmp_path / "forged.bin", light(50e6)
    path.write_bytes(forged)
    with agents(tmp_path, 2) as there, sender_to(there) as sender, forger(way, path):
        result = sender.send_file(file, Route(way))
        for one in there:
            assert one.files() == {file.name: content}
            # Whoever is not the sender is not even listened to.
            assert one.received().refused == 0
        assert result.complete == 2


def test_a_neighbour_in_the_chain_cannot_bring_its_blocks(
    tmp_path: Path, file: Path, content: bytes, forged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = 0

    class Liar(FileOutlet):
        """Gives its own blocks to whoever comes after it."""

        def give(self, sock: socket.socket, offset: int, limit: int) -> int:
            nonlocal given
            sent = sock.send(forged[offset : offset + limit])
            given = max(given, offset + sent)
            return sent

    def outlet(engine: str, descriptor: int) -> FileOutlet:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        return Liar(descriptor) if path.parent.name == there[0].name else open_outlet(engine, descriptor)

    monkeypatch.setattr(node, "open_outlet", outlet)
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(Chain()))
        assert [one.files() for one in there] == [{file.name: content}] * 2
        assert (result.complete, there[0].received().refused) == (2, 0)
        # A machine may be too busy for a chain; then nobody is lied to.
        assert there[1].received().refused == len(FOREIGN) or given < SIZE


def test_a_neighbour_in_the_chain_cannot_say_where_a_stream_ends(tmp_path: Path) -> None:
    content = content_of(100_000)
    store = file_store(tmp_path / "out", "f", None)
    chain = (Member("", "", 0), Member("liar", "", 0), Member("us", "", 0))
    receiver = PipelineNode(PipelineLeg(1, 1, bytes(16), 0, chain, 2), store, lambda _: None)
    ours, theirs = socket.socketpair()
    with theirs:
        receiver.start()
        receiver.accept(ours, "liar")
        theirs.sendall(encode(Data(len(content))) + content + encode(End(len(content) - 1000, True)))
        theirs.sendall(encode(Report({})))
        blocks = -(-len(content) // Layout(None, SEGMENT).block_size)
        eventually(lambda: store.position == blocks, what="the node has stored the stream")
        receiver.stop("the test is over")
        assert receiver.join(PATIENCE)
    core = ReceiverCore(Hello(1, None, SEGMENT, 44, SUITE.name, "file", "f"), Assembly(store), 0.0)
    digests = digests_of(content)
    store.expect(0, digests)
    core.assembly.settle(len(content))
    core.end_of_data(EndOfData(1, len(content), SUITE.whole(digests)), 0.0)
    assert core.state is ReceiverState.COMMITTING
    store.commit(core.digest)
    assert (tmp_path / "out" / "f").read_bytes() == content


def test_forged_datagrams_do_not_turn_light_into_unicast(
    tmp_path: Path, file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody opens blocks all over the file, more than may be open, before the sender comes to them."""
    monkeypatch.setattr(assembly, "MOST_OPEN_BYTES", 8 * LAYOUT.block_size)
    way, stop, heard = light(100e6), threading.Event(), threading.Event()

    def disturb() -> None:
        with (
            open_group_socket(LOOPBACK, way.group, way.port) as ear,
            open_sender_socket(LOOPBACK, way.group, way.port) as mouth,
        ):
            ear.settimeout(PATIENCE)
            session = HEADER.unpack_from(ear.recv(65536))[0]
            heard.set()
            while not stop.wait(0.001):
                for block in range(LAYOUT.blocks - 40, LAYOUT.blocks - 1):
                    mouth.send(datagram(session, 44 * block + 43, bytes(LAYOUT.segment_size)))

    with agent(tmp_path / "r") as there, sender_to([there]) as sender:
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            result = sender.send_file(file, Route(way))
        finally:
            stop.set()
            thread.join(PATIENCE)
        assert heard.is_set()
        # What is dropped because there is no room for it is counted as refused.
        assert (result.complete, there.received().refused) == (1, 0)
        assert there.files() == {file.name: content}
