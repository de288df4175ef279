"""The parts around the pipeline cores: replay, dialler, probes, links and successor."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from blast_transport.base.errors import ForgottenError, RemoteError, WrongInputError
from blast_transport.base.waker import Waker
from blast_transport.links.dialling import Address
from blast_transport.transports.pipeline.connections import dialling
from blast_transport.transports.pipeline.connections.closing_connections import ClosingConnections
from blast_transport.transports.pipeline.connections.copy_pump import Replay
from blast_transport.transports.pipeline.connections.dialling import Dialler, LivenessProbes
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.protocol.core import SourceCore
from blast_transport.transports.pipeline.protocol.events import Command, Event, Started
from blast_transport.transports.pipeline.protocol.messages import Forget, Get, PipelineHeartbeat, Quit, QuitReason
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase
from blast_transport.transports.pipeline.successor import Connections, Successor
from blast_transport.wire.joining import Join
from tests.support.waiting import eventually


@pytest.fixture
def waker() -> Iterator[Waker]:
    waker = Waker()
    yield waker
    waker.close()


@pytest.fixture
def pair() -> Iterator[tuple[Link, Link]]:
    ours, theirs = (Link(sock) for sock in socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


def run_until(waker: Waker, condition: object) -> None:
    def holds() -> bool:
        waker.run()
        return bool(condition())  # type: ignore[operator]

    eventually(holds)


def test_phase_finds_members_and_rejects_invalid_chains() -> None:
    chain = (ChainMember("a", "h", 1), ChainMember("b", "h", 2))
    phase = PipelinePhase(1, 1, bytes(16), 0, chain, 1)
    assert (phase.place("b"), phase.place("c")) == (1, None)
    with pytest.raises(WrongInputError):
        PipelinePhase(1, 1, bytes(16), 0, chain, 2)
    with pytest.raises(WrongInputError):
        PipelinePhase(1, 1, bytes(16), 0, (chain[0], chain[0]), 1)


def test_replay_keeps_last_pieces() -> None:
    replay = Replay(position=100, piece_size=10, capacity=35)
    stream = bytes(range(64))
    for start in range(0, 60, 10):
        replay.append(stream[start : start + 10])
    replay.append(stream[60:])
    assert (replay.first_held, replay.end) == (130, 164)
    for offset in range(90, 175):
        piece = replay.piece(offset)
        if 130 <= offset < 164:
            assert piece is not None
            assert piece == stream[offset - 100 : (offset - 100) // 10 * 10 + 10]
        else:
            assert piece is None


def test_replay_keeps_one_piece_of_any_size() -> None:
    replay = Replay(0, 100, capacity=10)
    replay.append(bytes(100))
    assert (replay.first_held, replay.end) == (0, 100)


def test_closed_waker_runs_posted_calls_immediately(waker: Waker) -> None:
    done: list[str] = []
    waker.post(lambda: done.append("before"))
    waker.close()
    assert done == ["before"]
    waker.post(lambda: done.append("after"))
    waker.wake()
    assert done == ["before", "after"]


def test_dialler_connects_only_last_dialed_member(waker: Waker) -> None:
    release = threading.Event()
    made: list[socket.socket] = []

    def connect(member: ChainMember, timeout: float) -> socket.socket:
        release.wait(timeout)
        ours, theirs = socket.socketpair()
        made.append(theirs)
        return ours

    dialler, connected, failed = Dialler(connect, waker, 5.0), list[Link](), list[str]()
    for name in ("first", "second"):
        dialler.dial(ChainMember(name, "h", 1), connected.append, lambda reason, _: failed.append(reason))
    release.set()
    run_until(waker, lambda: connected and len(made) == 2)
    waker.run()
    assert len(connected) == 1
    assert not failed
    connected[0].close()
    for sock in made:
        sock.settimeout(30)
        assert sock.recv(1) == b""
        sock.close()


def test_dial_failure_distinguishes_refusal_from_timeout(waker: Waker) -> None:
    def connect(member: ChainMember, timeout: float) -> socket.socket:
        if member.port:
            raise ConnectionRefusedError(111, "Connection refused")
        time.sleep(timeout)  # a host that answers nothing
        raise TimeoutError("timed out")

    failed: list[tuple[str, bool]] = []
    for port in (1, 0):
        dialler = Dialler(connect, waker, 0.05)
        dialler.dial(ChainMember("x", "h", port), lambda link: None, lambda *failure: failed.append(failure))
        run_until(waker, lambda port=port: len(failed) == 2 - port)
    assert failed == [("cannot connect to x: Connection refused", False), ("cannot connect to x: timed out", True)]


class Frozen(socket.socket):
    """A socket connected by the kernel of a frozen host: reads time out, on the clock of the test."""

    clock: list[float]

    def recv(self, *_: int) -> bytes:
        self.clock[0] += self.gettimeout() or 0.0
        raise TimeoutError("timed out")


@pytest.fixture
def probes(waker: Waker, monkeypatch: pytest.MonkeyPatch) -> Iterator[LivenessProbes]:
    """Probe for 0.2 s members that are: `refusing`, `closing`, `frozen` (its kernel connects), `unreachable`."""
    clock = [100.0]
    monkeypatch.setattr(dialling, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def connect(member: ChainMember, timeout: float) -> socket.socket:
        if member.name == "refusing":
            raise ConnectionRefusedError(111, "Connection refused")
        if member.name == "unreachable":
            clock[0] += timeout
            raise TimeoutError("timed out")
        ours, theirs = socket.socketpair()
        theirs.close()
        if member.name == "frozen":
            ours = Frozen(fileno=ours.detach())
            ours.clock = clock
        return ours

    yield LivenessProbes(connect, waker, 0.2)
    await_probes(waker)


def await_probes(waker: Waker) -> None:
    """Wait until every probe has ended, and its result was reported."""
    eventually(lambda: not any(thread.name.startswith("probe of") for thread in threading.enumerate()))
    waker.run()


@pytest.mark.parametrize("name", ["frozen", "unreachable"])
def test_member_that_does_not_answer_probe_is_silent(waker: Waker, probes: LivenessProbes, name: str) -> None:
    silent: list[str] = []
    probes.send(3, ChainMember("refusing", "h", 1))
    probes.send(4, ChainMember(name, "h", 1))
    probes.await_silence(4, lambda: silent.append("awaited"))
    run_until(waker, lambda: bool(silent))
    # A result is reported to later callers at once; a new probe replaces it.
    probes.await_silence(4, lambda: silent.append("known"))
    run_until(waker, lambda: len(silent) == 2)
    probes.send(4, ChainMember("closing", "h", 1))
    probes.await_silence(4, lambda: silent.append("is it?"))
    await_probes(waker)
    assert silent == ["awaited", "known"]


@pytest.mark.parametrize("name", ["refusing", "closing"])
def test_member_that_answers_probe_is_not_silent(waker: Waker, probes: LivenessProbes, name: str) -> None:
    silent: list[str] = []
    probes.send(4, ChainMember(name, "h", 1))
    probes.send(5, ChainMember("frozen", "h", 1))
    probes.await_silence(4, lambda: silent.append(name))
    await_probes(waker)
    assert not silent


def test_no_member_is_silent_if_no_probe_is_answered(waker: Waker, probes: LivenessProbes) -> None:
    silent: list[str] = []
    for place in (3, 4):
        probes.send(place, ChainMember("frozen", "h", 1))
    probes.await_silence(4, lambda: silent.append("frozen"))
    await_probes(waker)
    assert not silent


@pytest.mark.parametrize("first", ["unreachable", "frozen"])
def test_single_lost_probe_does_not_make_member_silent(waker: Waker, first: str) -> None:
    made, silent, kept = list[str](), list[str](), list[socket.socket]()

    def connect(address: Address, timeout: float) -> socket.socket:
        made.append(address[0])
        lost = made.count(address[0]) == 1
        if lost and first == "unreachable":
            time.sleep(timeout)  # the packet that is lost
            raise TimeoutError("timed out")
        ours, theirs = socket.socketpair()
        kept.append(theirs)
        if not lost:
            theirs.close()
        return ours

    probes = LivenessProbes(connect, waker, 0.2)
    probes.send(4, ChainMember("a", "h", 1))
    probes.await_silence(4, lambda: silent.append("a"))
    await_probes(waker)
    assert (made, silent) == (["a", "a"], [])
    for sock in kept:
        sock.close()


@pytest.mark.parametrize("forget", [LivenessProbes.recall, LivenessProbes.cancel])
def test_recalled_or_canceled_probe_reports_nothing(
    waker: Waker, probes: LivenessProbes, forget: Callable[[LivenessProbes], None]
) -> None:
    silent: list[str] = []
    probes.send(3, ChainMember("closing", "h", 1))
    probes.send(4, ChainMember("frozen", "h", 1))
    probes.await_silence(4, lambda: silent.append("frozen"))
    forget(probes)
    await_probes(waker)
    assert not silent


def test_link_with_full_output_raises_error(pair: tuple[Link, Link]) -> None:
    ours, _ = pair
    with pytest.raises(RemoteError, match="does not accept messages"):
        for number in range(1000):
            ours.send(Get(number))


def test_heartbeats_do_not_accumulate_in_link(pair: tuple[Link, Link]) -> None:
    ours, theirs = pair
    for number in range(1000):
        ours.send(PipelineHeartbeat(number, False))
    assert ours.flush()
    assert (theirs.receive(), theirs.receive()) == (PipelineHeartbeat(0, False), None)
    ours.send(PipelineHeartbeat(5, False))
    assert ours.flush()
    assert theirs.receive() == PipelineHeartbeat(5, False)


def test_closing_connection_delivers_last_message(pair: tuple[Link, Link]) -> None:
    ours, theirs = pair
    closing = ClosingConnections(5.0)
    theirs.send(PipelineHeartbeat(1, False))
    theirs.flush()
    ours.send(Quit(QuitReason.LEFT, "no room"))
    closing.add(ours)
    closing.serve(time.monotonic())
    assert theirs.receive() == Quit(QuitReason.LEFT, "no room")
    with pytest.raises(RemoteError):
        theirs.receive()
    assert closing.deadline() is not None
    theirs.close()
    closing.serve(time.monotonic())
    assert closing.deadline() is None


def test_closing_connection_ends_at_deadline(pair: tuple[Link, Link]) -> None:
    ours, _ = pair
    closing = ClosingConnections(0.0)
    ours.send(Quit(QuitReason.DONE))
    closing.add(ours)
    closing.serve(time.monotonic())
    assert closing.deadline() is None
    assert ours.socket.fileno() == -1


class Forgetful:
    """An outlet that has forgotten all data once `forgotten` is set."""

    forgotten = False
    frames = None

    def check(self, offset: int) -> None:
        if self.forgotten:
            raise ForgottenError(1 << 30)

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        self.check(offset)
        return sock.send(bytes(min(limit, 1000)))


def test_data_forgotten_within_chunk_reconnects_successor(waker: Waker) -> None:
    """A message within promised data would be read as data, so the successor needs a new connection."""
    accepted: list[Link] = []

    def connect(address: Address, timeout: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        accepted.append(Link(theirs))
        return ours

    chain = tuple(ChainMember(name, "h", 1) for name in "ab")
    phase, outlet, commands = PipelinePhase(1, 1, bytes(16), 0, chain, 0), Forgetful(), list[Command]()
    core, closing = SourceCore(phase, 0), ClosingConnections(0.0)
    probes = LivenessProbes(connect, waker, 1.0)

    def handle(event: Event) -> None:
        commands.extend(core.handle(event, 0.0))
        while commands:
            successor.obey(commands.pop(0))

    successor = Successor(phase, core.down, outlet, handle, Connections(Dialler(connect, waker, 1.0), probes, closing))
    handle(Started())
    run_until(waker, lambda: successor.pour(0) or (accepted and isinstance(accepted[0].receive(), Join)))
    accepted[0].send(Get(0))
    accepted[0].flush()
    successor.listen()
    core.readable(1 << 20, 0.0)
    successor.pour(1 << 20)
    assert 0 < successor.promised - core.down.sent < 1 << 20
    outlet.forgotten = True
    successor.pour(1 << 20)
    run_until(waker, lambda: successor.pour(0) or (len(accepted) == 2 and isinstance(accepted[1].receive(), Join)))
    accepted[1].send(Get(8000))
    accepted[1].flush()
    successor.listen()
    successor.pour(1 << 20)
    successor.pour(1 << 20)
    assert accepted[1].receive() == Forget(1 << 30)
    successor.close()
    for link in accepted:
        link.close()
