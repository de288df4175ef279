"""A whole pipeline on loopback: a listener for each node does what an agent does with whoever joins."""

from __future__ import annotations

import os
import random
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from blast_transport.blocks.digests import BEST, SUITES
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.pipeline.node import PipelineNode
from blast_transport.carriers.pipeline.protocol.leg import (
    Ended,
    Member,
    PipelineEvent,
    PipelineLeg,
    PipelineTimings,
    Reported,
)
from blast_transport.carriers.pipeline.protocol.messages import Decoder
from blast_transport.carriers.pipeline.source import PipelineSource
from blast_transport.links.dialling import Dialer, dial
from blast_transport.store.block_store import BlockStore
from blast_transport.store.command_target import CommandTarget
from blast_transport.store.file_target import FileTarget, open_directory
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.source import Source
from blast_transport.store.store import Store
from blast_transport.wire.joining import Join
from tests.support.engines import asked_engine, checked_store
from tests.support.waiting import HANGING, eventually

SEGMENT = 1456
SUITE = SUITES[BEST]


def read_join(sock: socket.socket) -> Join:
    """What an agent reads before it hands a socket over."""
    decoder = Decoder()
    while True:
        data = sock.recv(decoder.wanted)
        if not data:
            raise ConnectionError("closed before Join")
        message = decoder.feed(data)
        if message is not None:
            assert isinstance(message, Join)
            return message


class Door:
    """A listener that hands whoever joins to `admit`."""

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


class Events:
    """Collects what a node tells its session."""

    def __init__(self) -> None:
        self.all: list[PipelineEvent] = []

    def __call__(self, event: PipelineEvent) -> None:
        self.all.append(event)

    @property
    def ended(self) -> Ended | None:
        return next((event for event in self.all if isinstance(event, Ended)), None)

    @property
    def failed(self) -> dict[str, str] | None:
        return next((event.failed for event in self.all if isinstance(event, Reported)), None)


def content_of(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def file_store(directory: Path, name: str, size: int | None) -> BlockStore:
    directory.mkdir(exist_ok=True)
    layout = Layout(size, SEGMENT)
    target = FileTarget(open_directory(directory), directory, name, size, secrets.token_hex(8))
    return checked_store(asked_engine(), layout, target)


def memory_store(size: int | None) -> Store:
    return Store(Layout(size, SEGMENT), SUITE, MemoryTarget("memory", 1 << 30))


@dataclass(frozen=True)
class Program:
    """A command that is run as it stands."""

    arguments: tuple[str, ...]
    name: str = "command"
    folder: Path = Path("/tmp")
    tells_errors: bool = False

    @property
    def environment(self) -> dict[str, str]:
        return dict(os.environ)


def command_store(size: int | None, *arguments: str) -> Store:
    return Store(Layout(size, SEGMENT), SUITE, CommandTarget(Program(arguments)))


def digests_of(content: bytes) -> bytes:
    block = Layout(len(content), SEGMENT).block_size
    return b"".join(SUITE.block(content[start : start + block]) for start in range(0, len(content), block))


def finish(store: Store, content: bytes) -> bool:
    """What a session does at the end: check the digests and make the whole good."""
    digests = digests_of(content)
    store.finish_size(len(content))
    if digests:
        store.expect(0, digests)
    if not store.complete:
        store.discard()
        return False
    store.commit(SUITE.whole(digests))
    return True


class Chain:
    """The doors of `nodes` receivers and a source, n0 being the source; a context manager."""

    def __init__(self, nodes: int, timings: PipelineTimings | None = None) -> None:
        self.doors = [Door() for _ in range(nodes + 1)]
        self.members = tuple(Member(f"n{place}", "127.0.0.1", door.port) for place, door in enumerate(self.doors))
        # A machine that does much else may keep a thread waiting for seconds.
        self.timings = timings or PipelineTimings(silence=HANGING, answer=HANGING)
        self.events = [Events() for _ in self.doors]
        self.running: list[PipelineNode | PipelineSource] = []
        self.connect: Dialer = dial
        self._token = secrets.token_bytes(16)

    def __enter__(self) -> Chain:
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self.running:
            runner.stop("the test is over")
        for runner in self.running:
            assert runner.join(30), "a thread does not end"
        for door in self.doors:
            door.close()

    def leg(self, place: int, first_block: int = 0) -> PipelineLeg:
        return PipelineLeg(7, 1, self._token, first_block, self.members, place, self.timings)

    def node(self, place: int, store: Store, first_block: int = 0) -> PipelineNode:
        node = PipelineNode(self.leg(place, first_block), store, self.events[place], self.connect)
        self.doors[place].admit = node.accept
        self.running.append(node)
        node.start()
        return node

    def source(self, source: Source, first_block: int = 0) -> PipelineSource:
        block = Layout(None, SEGMENT).block_size
        engine = asked_engine()
        running = PipelineSource(self.leg(0, first_block), source, block, self.events[0], self.connect, engine=engine)
        self.doors[0].admit = running.accept
        self.running.append(running)
        running.start()
        return running

    def all(self, stores: Sequence[BlockStore], source: Source) -> PipelineSource:
        """A node for each of these stores, and the source."""
        for place, store in enumerate(stores, 1):
            self.node(place, store)
        return self.source(source)

    def wait(self, seconds: float = HANGING) -> None:
        for runner in self.running:
            assert runner.join(seconds), f"{runner.leg.index} has not ended"


def open_descriptors() -> set[str]:
    """What is open, each socket and pipe by its own number."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(entry.readlink()))
    return found


@contextmanager
def nothing_leaks() -> Iterator[None]:
    """Every descriptor and thread that begins ends; what was there before may end, too."""
    descriptors, threads = open_descriptors(), set(threading.enumerate())
    yield
    eventually(lambda: open_descriptors() <= descriptors, what="the end of every descriptor")
    eventually(lambda: set(threading.enumerate()) <= threads, what="the end of every thread")
