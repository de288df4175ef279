"""A stream into commands changes its transport in mid-transfer: its data cannot be read again."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from blast_transport.base.errors import RemoteProtocolError, SourceChangedError
from blast_transport.base.report import Progress, TransferResult
from blast_transport.credentials.admission import AgentConnection
from blast_transport.links.dialling import SOURCE
from blast_transport.session.receiver_session import ReceiverSession
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination
from blast_transport.store.sources.source import StreamSource
from blast_transport.transports.choices import Chain, TransportChoice, Tree, Trees, Unicast
from blast_transport.wire.datagram import segment_size_for, segments_for
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import COMMAND, Phase
from tests.support.transport.transport_hosts import MTU, TOLERANT, Agent, agents, light, sender_to

SIZE = 8 << 20
RING = 2 << 20
PIECE = 1 << 16


def chains(*orders: tuple[str, ...]) -> Trees:
    """Return trees, one chain along each of these orders."""
    return Trees(tuple(Tree(400e6, dict(zip(order, (SOURCE, *order), strict=False))) for order in orders))


def trees() -> Trees:
    return chains(("r0", "r1", "r2"), ("r2", "r0", "r1"))


def pipeline(*order: str) -> Chain:
    """Return a pipeline that tolerates a busy machine: a stream is not kept for a node that seems dead."""
    return Chain(order or None, node_timeout=10.0)


CHANGES: dict[str, tuple[Callable[[], TransportChoice], Callable[[], TransportChoice]]] = {
    "pipeline to another": (pipeline, lambda: pipeline("r2", "r1", "r0")),
    "pipeline to trees": (pipeline, trees),
    "trees to pipeline": (trees, pipeline),
    "trees to others": (trees, lambda: chains(("r1", "r2", "r0"), ("r2", "r1", "r0"))),
    "light to trees": (light, trees),
    "trees to light": (trees, light),
}


@pytest.mark.parametrize(("first", "second"), CHANGES.values(), ids=CHANGES)
def test_commands_receive_stream_across_transport_change(
    tmp_path: Path, first: Callable[[], TransportChoice], second: Callable[[], TransportChoice]
) -> None:
    content = random.Random(3).randbytes(SIZE)
    with collecting(tmp_path) as there, sender_to(there, TOLERANT) as sender:
        result = stream(sender, content, first(), second())
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert len(result.transports) == 2
        for one in there:
            assert (one.directory / "collected").read_bytes() == content


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("change", ["trees to pipeline", "pipeline to another"])
def test_node_notified_late_of_chain_joins_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, late: int
) -> None:
    """Earlier nodes hold data of the previous transport, and must not take passing data for a beginning."""
    take_phase = ReceiverSession._take_phase

    def take_late(session: ReceiverSession, phase: Phase, now: float) -> None:
        if phase.number == 2 and session._around.emit is there[late].emit:
            time.sleep(0.6)  # It is late: that is what is tested.
        take_phase(session, phase, time.monotonic())

    monkeypatch.setattr(ReceiverSession, "_take_phase", take_late)
    first, second = CHANGES[change]
    content = random.Random(late).randbytes(SIZE)
    with collecting(tmp_path) as there, sender_to(there, TOLERANT) as sender:
        result = stream(sender, content, first(), second())
        assert [(outcome.reason, outcome.demoted) for outcome in result.receivers] == [("", "")] * 3
        assert result.transports == (first().transport, "pipeline")
        for one in there:
            assert (one.directory / "collected").read_bytes() == content


def test_stream_continues_without_unreachable_chain_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host answers the sender, but no chain node can reach it: the others must not wait for ever."""
    join = ReceiverSession.join

    def refuse(session: ReceiverSession, connection: AgentConnection, message: Join) -> None:
        if session._around.emit is there[1].emit:
            raise RemoteProtocolError("no connection is accepted here")
        join(session, connection, message)

    monkeypatch.setattr(ReceiverSession, "join", refuse)
    content = random.Random(5).randbytes(SIZE)
    with collecting(tmp_path) as there, sender_to(there, TOLERANT) as sender:
        result = stream(sender, content, Chain(), Chain())
        reasons = [outcome.reason for outcome in result.receivers]
        assert (reasons[0], reasons[2]) == ("", "")
        assert "too far behind the stream" in reasons[1]
        for one in (there[0], there[2]):
            assert (one.directory / "collected").read_bytes() == content


@pytest.mark.parametrize("way", [Chain, trees, light, Unicast], ids=["pipeline", "trees", "light", "unicast"])
def test_broken_stream_is_complete_at_no_receiver(tmp_path: Path, way: Callable[[], TransportChoice]) -> None:
    """Everything that it gave has arrived, and nothing more is to be read, when it turns out to be broken."""
    ours, theirs = socket.socketpair()
    segment_size = segment_size_for(MTU)
    content = random.Random(1).randbytes(16 * segments_for(segment_size) * segment_size)

    def break_off(progress: Progress) -> None:
        if progress.slowest == len(content):
            theirs.close()

    with agents(tmp_path, 3) as there, sender_to(there, TOLERANT) as sender, ours, theirs:
        # A socket with unread data is reset when it is closed.
        ours.sendall(b"never read")
        with StreamSource(ours.fileno()) as source:
            feed = threading.Thread(target=theirs.sendall, args=(content,))
            feed.start()
            with pytest.raises(SourceChangedError, match="the stream cannot be read"):
                sender.transmit(source, Route(way()), Destination("log"), break_off)
            feed.join()
        for one in there:
            one.failed()
            assert not one.files()


def collecting(directory: Path) -> AbstractContextManager[list[Agent]]:
    """Three agents, each with a command that takes all that comes."""
    return agents(directory, 3, commands={"collect": ("/bin/dd", "of=collected", "status=none")})


def stream(sender: Sender, content: bytes, first: TransportChoice, second: TransportChoice) -> TransferResult:
    """Send it as it is produced, the first half by `first`, the other by `second`."""
    route = Route(first)
    reader, writer = os.pipe()

    def produce() -> None:
        for begin in range(0, SIZE, PIECE):
            if begin == SIZE // 2:
                route.go(second)
            os.write(writer, content[begin : begin + PIECE])
        os.close(writer)

    thread = threading.Thread(target=produce)
    with StreamSource(reader, RING) as source:
        thread.start()
        try:
            return sender.transmit(source, route, Destination("collect", COMMAND))
        finally:
            # A writer into a pipe without a reader would block for ever.
            os.close(reader)
            thread.join()
