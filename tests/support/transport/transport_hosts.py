"""Receivers on the loopback interface, in threads and in processes, and an optical path with losses and errors."""

from __future__ import annotations

import json
import os
import queue
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from blast_base.endpoint import Endpoint
from blast_transport.agent.permissions import Permissions
from blast_transport.agent.reporting import Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import (
    AgentClientSection,
    AgentSection,
    CommandSection,
    FolderSection,
    LimitsSection,
    Settings,
)
from blast_transport.agent.targets import Targets, session_factory
from blast_transport.base.engines import AUTO
from blast_transport.base.report import Failed, Progress, Received, ReceiverEvent, TransferResult
from blast_transport.credentials.admission import Admission, dialer
from blast_transport.credentials.material import Credentials
from blast_transport.datagrams.interface import open_group_socket
from blast_transport.links.chain_source import node_dialer
from blast_transport.links.connection_limits import MAX_CONNECTIONS
from blast_transport.links.dialling import Dialer
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.receiver_session import HostResources
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.sources.source import FileSource
from blast_transport.store.targets.file_target import FileRules
from blast_transport.store.targets.target import Target
from blast_transport.transports.choices import OpticalChoice
from blast_transport.transports.receiving import GroupOpener
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import Hello
from tests.support.transport.engines import asked_engine
from tests.support.waiting import HANGING, eventually

LOOPBACK = "127.0.0.1"
MTU = 1500
TIMEOUT = 30.0
BLAST = [str(Path(sys.executable).with_name("blast"))]


def light(rate: float = 400e6, **more: float) -> OpticalChoice:
    """Return an optical route with a group of its own, since tests run in parallel."""
    group = f"239.77.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    return OpticalChoice(group, 20000 + secrets.randbelow(10000), rate, **more)  # type: ignore[arg-type]


class FaultyLight:
    """A factory of group sockets that lose, duplicate and change datagrams, super-packets or not."""

    def __init__(self, loss: float = 0.0, doubled: float = 0.0, changed: float = 0.0, seed: int = 0) -> None:
        self.lost = self.altered = 0
        self.shares = (loss, doubled, changed)
        self.chance = random.Random(seed)

    def __call__(self, interface_address: str, group: str, port: int, source: str | None = None) -> socket.socket:
        sock = _FaultySocket(fileno=open_group_socket(interface_address, group, port, source).detach())
        sock.faulty = self
        return sock

    def pass_on(self, datagrams: Sequence[bytes]) -> tuple[list[bytes], bool]:
        """Return the datagrams that survive, and whether they arrive twice."""
        loss, doubled, changed = self.shares
        kept = [datagram for datagram in datagrams if self.chance.random() >= loss]
        self.lost += len(datagrams) - len(kept)
        for index, datagram in enumerate(kept):
            if self.chance.random() < changed:
                self.altered += 1
                kept[index] = datagram[:-1] + bytes([datagram[-1] ^ 1])
        return kept, self.chance.random() < doubled


class _FaultySocket(socket.socket):
    faulty: FaultyLight
    again: list[bytes] | None = None
    source: object = None

    def recvmsg_into(self, buffers: Sequence[memoryview], *_: int) -> tuple[int, list[object], int, object]:  # type: ignore[override]
        size = len(buffers[0]) + len(buffers[1])
        if self.again is not None:
            kept, self.again = self.again, None
            return _scatter(kept, buffers), [], 0, self.source
        while True:
            length, _ancillary, flags, self.source = super().recvmsg_into(buffers)
            whole = b"".join(buffers)[:length]
            kept, twice = self.faulty.pass_on([whole[begin : begin + size] for begin in range(0, length, size)])
            self.again = kept if twice and kept else None
            if kept:
                return _scatter(kept, buffers), [], flags, self.source


def _scatter(datagrams: Sequence[bytes], buffers: Sequence[memoryview]) -> int:
    data = b"".join(datagrams)
    begin = 0
    for buffer in buffers:
        piece = data[begin : begin + len(buffer)]
        buffer[: len(piece)] = piece
        begin += len(piece)
    return len(data)


@dataclass
class Agent:
    """An agent in a thread of its own. `targets` are those of its sessions, `data` is below `directory`."""

    name: str
    directory: Path
    server: AgentServer
    events: queue.Queue[ReceiverEvent]
    emit: Callable[[ReceiverEvent], None]
    """The callback of its sessions, by which they are identified."""
    targets: list[Target] = field(default_factory=list)
    engines: set[str] = field(default_factory=set)
    """Of the stores that took something whole."""

    @property
    def address(self) -> tuple[str, str, int]:
        return (self.name, self.server.endpoint.host, self.server.endpoint.port)

    def next_event(self) -> ReceiverEvent:
        return self.events.get(timeout=TIMEOUT)

    def received(self) -> Received:
        event = self.next_event()
        assert isinstance(event, Received), event
        return event

    def failed(self) -> Failed:
        event = self.next_event()
        assert isinstance(event, Failed), event
        return event

    def files(self) -> dict[str, bytes]:
        """Return the files there, by name."""
        return {path.name: path.read_bytes() for path in self.directory.iterdir()}


@contextmanager
def agent(
    directory: Path,
    open_group: GroupOpener = open_group_socket,
    *,
    timings: ReceiverTimings | None = None,
    commands: dict[str, tuple[str, ...]] | None = None,
    file_bytes: int | None = None,
    credentials: Credentials = None,
    clients: Sequence[AgentClientSection] = (),
    max_rate: float | None = None,
    engine: str | None = None,
    listens: str = LOOPBACK,
    connections: int = MAX_CONNECTIONS,
    by: Callable[[Dialer], Dialer] = lambda dial: dial,
) -> Iterator[Agent]:
    """Run an agent that writes files below `directory`, and data into memory and `commands`; `by` wraps its dialer."""
    directory.mkdir(exist_ok=True)
    settings = Settings(
        AgentSection(Endpoint(listens, 0), LOOPBACK),
        folder=(FolderSection("files", directory),),
        command=tuple(CommandSection(name, run, directory) for name, run in (commands or {}).items()),
        limits=LimitsSection(memory_bytes=1 << 30, connections=connections),
    )
    targets_of = Targets(Permissions(settings), FileRules(file_bytes))
    events: queue.Queue[ReceiverEvent] = queue.Queue()

    def target_of(hello: Hello) -> Target:
        running.targets.append(targets_of(hello))
        return running.targets[-1]

    def note(event: ReceiverEvent) -> None:
        if isinstance(event, Received):
            running.engines.add(event.engine)
        events.put(event)

    admission = Admission(credentials, clients)
    surroundings = HostResources(
        target_of,
        note,
        LOOPBACK,
        max_rate=max_rate,
        timings=timings or ReceiverTimings(),
        open_group=open_group,
        connect=by(node_dialer(credentials, admission)),
        engine=engine or asked_engine(),
    )
    server = AgentServer(settings, admission, session_factory(surroundings), Reporter(), dialer(credentials))
    running = Agent(directory.name, directory, server, events, note)
    with serving(server):
        yield running


@contextmanager
def serving(server: AgentServer) -> Iterator[None]:
    """Run an agent's server in a thread until the end of the block."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield
    finally:
        server.stop("the test is over")
        thread.join(TIMEOUT)
        assert not thread.is_alive()


@contextmanager
def agents(directory: Path, number: int, **options: object) -> Iterator[list[Agent]]:
    """Run several agents below `directory`."""
    with ExitStack() as stack:
        make: Callable[..., object] = agent
        yield [stack.enter_context(make(directory / f"r{index}", **options)) for index in range(number)]  # type: ignore[arg-type]


@dataclass
class Process:
    """A receiver or an agent in a process of its own."""

    name: str
    directory: Path
    process: subprocess.Popen[str]
    port: int = 0

    @property
    def address(self) -> tuple[str, str, int]:
        return (self.name, LOOPBACK, self.port)

    def next_line(self) -> dict:
        """Return its next line."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def started(name: str, directory: Path, command: Sequence[str]) -> Iterator[Process]:
    """Run a command whose first line prints its port, and kill it at the end, also if it is frozen."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        running = Process(name, directory, process)
        try:
            running.port = running.next_line()["port"]
            yield running
        finally:
            running.thaw()
            process.kill()


def agent_process(config: Path) -> AbstractContextManager[Process]:
    """Run `blast agent run` with this configuration, whose name is the agent's."""
    words = ["agent", "run", "--config", str(config), "--json", "--log-level", "error"]
    return started(config.stem, config.parent, [*BLAST, *words])


@contextmanager
def receiver_process(directory: Path, port: int = 0, program: str = "blast_transport") -> Iterator[Process]:
    """Run `python -m blast_transport receive` into `directory`, or another `program` with this command."""
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-m", program, "receive", "--listen", f"{LOOPBACK}:{port}"]
    command += ["--interface-address", LOOPBACK, "--directory", str(directory)]
    with started(directory.name, directory, command) as running:
        yield running


TOLERANT = SenderSettings(LOOPBACK, MTU, SenderTimings(connect=30, ready=30, stall=30, freeze=30, hold_up=30, late=30))
"""Settings that exclude no receiver, however busy the machine is: a stream keeps no data for an excluded one."""


def sender_to(receivers: Sequence[Agent | Process], settings: SenderSettings | None = None) -> Sender:
    """Return a sender to these over the optical transport on loopback, which tolerates long scheduling delays."""
    settings = settings or SenderSettings(LOOPBACK, MTU, SenderTimings(ready=HANGING, stall=HANGING))
    engine = asked_engine() if settings.engine == AUTO else settings.engine
    return Sender([one.address for one in receivers], replace(settings, engine=engine))


def datagram(session: int, segment: int, payload: bytes, flags: int = 0) -> bytes:
    """Return an optical datagram."""
    return HEADER.pack(session, flags, segment) + payload


@contextmanager
def sending(
    sender: Sender, file: Path, route: Route, destination: Destination | None = None
) -> Iterator[list[TransferResult]]:
    """Run a transfer in a thread of its own; its result is available after the block."""
    results: list[TransferResult] = []
    thread = threading.Thread(target=lambda: results.append(sender.send_file(file, route, destination)))
    thread.start()
    try:
        yield results
    finally:
        thread.join(TIMEOUT)
        assert not thread.is_alive()


class Halves(FileSource):
    """A file whose second half becomes available on demand."""

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self.whole = False

    @property
    def available(self) -> int:
        return self.size if self.whole else self.size // 2


class Transfer:
    """A transfer in a thread of its own, whose second half waits."""

    def __init__(self, sender: Sender, path: Path, route: Route) -> None:
        self.route, self._sender, self._path = route, sender, path
        self._there = 0
        self._descriptor = os.open(path, os.O_RDONLY)
        self._source = Halves(path, self._descriptor)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def reach(self, size: int) -> None:
        """Wait until the receivers have `size` bytes: an excluded one is served once all of it is available."""
        eventually(lambda: self._there >= size, f"{size} bytes are there")

    def go_on(self) -> None:
        """Make the second half available."""
        self._source.whole = True
        self.route.wake()

    def _run(self) -> None:
        try:
            self.result = self._sender.transmit(self._source, self.route, Destination(self._path.name), self._note)
        finally:
            os.close(self._descriptor)

    def _note(self, progress: Progress) -> None:
        self._there = progress.median

    def end(self) -> None:
        """Wait for its end."""
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    @property
    def reasons(self) -> dict[str, str]:
        """Return the reasons of all failures."""
        return {one.name: one.reason for one in self.result.receivers if not one.complete}


@contextmanager
def transfer(sender: Sender, path: Path, route: Route) -> Iterator[Transfer]:
    one = Transfer(sender, path, route)
    try:
        yield one
    finally:
        one.go_on()
        one.end()
