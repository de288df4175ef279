"""The contract of a transport, tested on all of the package and on two from outside.

All tests use the Python engine; a test that depends on the engine runs with the compiled one as well.
"""

from __future__ import annotations

import filecmp
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from blast_transport.base.engines import PYTHON
from blast_transport.base.report import Progress
from blast_transport.links.dialling import SOURCE
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.source import StreamSource
from blast_transport.transports.choices import (
    Chain,
    MulticastChoice,
    OpticalPause,
    TransportChoice,
    Tree,
    Trees,
    Unicast,
)
from blast_transport.transports.pipeline.connections.link import Link
from blast_transport.transports.pipeline.connections.pump import Intake
from blast_transport.transports.trees.root import Root
from blast_transport.wire.messages import COMMAND, MEMORY
from blast_transport.wire.transports import TRANSPORTS
from tests.support.transport import toy_transports
from tests.support.transport.engines import BOTH, asked_engine, asking_for
from tests.support.transport.toy_transports import Outside, Relay
from tests.support.transport.transport_hosts import (
    LOOPBACK,
    MTU,
    TIMEOUT,
    TOLERANT,
    Agent,
    FaultyLight,
    agent,
    agents,
    light,
    receiver_process,
    sender_to,
    transfer,
)
from tests.support.waiting import HANGING, eventually

SIZE = 3 << 20
LARGE = 9 << 20
"""More than may be under way along a pipeline that is left."""
BLOCK = 44 * 1456
SPARSE = 200 << 20

HOSTS = ["a", "b", "late", "p0", "r0", "r1", "r2", "slow"]


def two_trees() -> Trees:
    """Return two chains in opposite orders; absent hosts are left out."""
    chains = ([SOURCE, *HOSTS], [SOURCE, *reversed(HOSTS)])
    return Trees(tuple(Tree(800e6, dict(zip(chain[1:], chain, strict=False))) for chain in chains))


CHOICES: dict[str, Callable[[], TransportChoice]] = {
    "optical": light,
    "multicast": MulticastChoice,
    "pipeline": Chain,
    "trees": two_trees,
    "unicast": Unicast,
    "relay": Relay,
    "outside": Outside,
}
EVERY = pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
OURS = pytest.mark.parametrize("choice", list(CHOICES.values())[:5], ids=list(CHOICES)[:5])
NEXT = [*zip(CHOICES, [*list(CHOICES)[1:], "optical"], strict=True), ("pipeline", "optical")]


@pytest.fixture(scope="module", autouse=True)
def _by_python() -> Iterator[None]:
    with asking_for(PYTHON):
        yield


def all_have(there: list[Agent], file: Path) -> bool:
    """Return whether all agents have the file; check the engines that they report."""
    assert all(asked_engine() in one.engines for one in there if one.engines)
    return all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_choices_cover_all_transports() -> None:
    assert set(CHOICES) == set(TRANSPORTS)


@pytest.mark.component
@EVERY
@pytest.mark.parametrize("engine", BOTH)
def test_every_size_arrives_complete_and_in_order(
    tmp_path: Path, content: bytes, choice: Callable[[], TransportChoice], engine: str
) -> None:
    """One receiver takes it in any order into a file, or in memory; one in order by a pipe."""
    file, copied = tmp_path / "content", tmp_path / "copied"
    with (
        asking_for(engine),
        agent(tmp_path / "a", commands={"copy": ("/bin/sh", "-c", f"cat > {copied}")}) as one,
        agent(tmp_path / "b", commands={"copy": ("/bin/sh", "-c", "cat > /dev/null")}) as other,
        sender_to([one, other]) as sender,
    ):
        for size in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK):
            file.write_bytes(content[:size])
            for destination in (Destination("content"), Destination("memory", MEMORY), Destination("copy", COMMAND)):
                result = sender.send_file(file, Route(choice()), destination)
                assert [outcome.reason for outcome in result.receivers] == ["", ""]
            assert all_have([one, other], file)
            assert copied.read_bytes() == content[:size]


Stream = TypeVar("Stream", bound=StreamSource)
COLLECT = {"collect": ("/bin/dd", "of=collected", "status=none", "bs=64k")}


@contextmanager
def streamed(content: bytes, kind: type[Stream] = StreamSource) -> Iterator[Stream]:
    """Yield a stream with this content, through a ring that holds a third of it."""
    reader, writer = os.pipe()

    def produce() -> None:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(content)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        with kind(reader, SIZE // 3) as source:
            yield source
    finally:
        os.close(reader)
        thread.join(TIMEOUT)


@OURS
def test_stream_of_unknown_length_arrives_complete(
    tmp_path: Path, content: bytes, choice: Callable[[], TransportChoice]
) -> None:
    """Commands receive it; light loses, duplicates and alters datagrams, which does not affect other transports."""
    faulty = FaultyLight(0.01, 0.01, 0.0005)
    with (
        agents(tmp_path, 3, commands=COLLECT, open_group=faulty) as there,
        sender_to(there, replace(TOLERANT, sealed=True)) as sender,
    ):
        for stream in (content, content[:1000], b""):
            with streamed(stream) as source:
                result = sender.transmit(source, Route(choice()), Destination("collect", COMMAND))
            assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
            assert result.bytes == len(stream)
            assert all(one.files() == {"collected": stream} for one in there)


class HiddenSource(StreamSource):
    """A stream that shows at most `limit` bytes until the test raises the limit."""

    limit = 1 << 20

    @property
    def read_ahead(self) -> int:
        """Bytes before this offset have come."""
        return super().available

    @property
    def available(self) -> int:
        """Bytes before this offset have come and are seen."""
        return min(self.read_ahead, self.limit)


@pytest.mark.parametrize(("first", "second"), [("pipeline", "optical"), ("trees", "unicast")])
def test_stream_continues_when_its_whole_buffer_is_under_way(
    tmp_path: Path, content: bytes, first: str, second: str
) -> None:
    """The buffer is filled in the moment at which the first transport is left, so that no digest of it is known."""
    route = Route(CHOICES[first]())
    with agents(tmp_path, 3, commands=COLLECT) as there, sender_to(there, TOLERANT) as sender:
        with streamed(content, HiddenSource) as source:

            def change(progress: Progress) -> None:
                first_of_next = progress.slowest // BLOCK * BLOCK
                if source.limit < SIZE and first_of_next and source.read_ahead >= first_of_next + SIZE // 3:
                    source.limit = SIZE
                    route.go(CHOICES[second]())

            result = sender.transmit(source, route, Destination("collect", COMMAND), change)
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert result.transports == (first, second)
        assert all(one.files() == {"collected": content} for one in there)


@OURS
def test_failed_command_fails_only_its_receiver(
    tmp_path: Path, content: bytes, choice: Callable[[], TransportChoice]
) -> None:
    failing = {"collect": ("/bin/sh", "-c", "head -c 100000 > /dev/null; exit 7")}
    with (
        agent(tmp_path / "a", commands=COLLECT) as good,
        agent(tmp_path / "b", commands=failing) as bad,
        sender_to([good, bad]) as sender,
    ):
        with streamed(content) as source:
            result = sender.transmit(source, Route(choice()), Destination("collect", COMMAND))
        assert [outcome.complete for outcome in result.receivers] == [True, False], result
        assert "collect" in result.receivers[1].reason
        assert good.files() == {"collected": content}
        bad.failed()


@EVERY
def test_transfer_survives_pause_and_resume_of_transport(
    tmp_path: Path, file: Path, choice: Callable[[], TransportChoice]
) -> None:
    with agents(tmp_path, 3) as there, sender_to(there, TOLERANT) as sender:
        way = choice()
        with transfer(sender, file, Route(way)) as one:
            one.reach(SIZE // 4)
            one.route.go(OpticalPause())
            one.route.go(way)
        assert one.reasons == {}
        assert all_have(there, file)


@pytest.mark.parametrize(("first", "second"), NEXT)
def test_each_transport_hands_over_to_the_next(tmp_path: Path, content: bytes, first: str, second: str) -> None:
    large = tmp_path / "large"
    large.write_bytes(content * (LARGE // SIZE))
    with agents(tmp_path, 3) as there, sender_to(there, TOLERANT) as sender:
        with transfer(sender, large, Route(CHOICES[first]())) as one:
            one.reach(LARGE // 4)
            one.route.go(CHOICES[second]())
        assert one.reasons == {}
        # A host that a busy machine keeps from following at once costs one more phase.
        assert one.result.transports[0] == first and set(one.result.transports[1:]) == {second}
        assert all_have(there, large)
        assert sum(outcome.refused for outcome in one.result.receivers) == 0


def test_transport_is_replanned_during_transfer(tmp_path: Path, file: Path) -> None:
    with agents(tmp_path, 4) as there, sender_to(there, TOLERANT) as sender:
        with transfer(sender, file, Route(Relay(1))) as one:
            one.reach(SIZE // 4)
            one.route.go(Relay(3))
        assert one.reasons == {}
        assert one.result.transports == ("relay", "relay")
        assert all_have(there, file)


@EVERY
def test_slow_receiver_gets_complete_file(tmp_path: Path, file: Path, choice: Callable[[], TransportChoice]) -> None:
    with (
        agents(tmp_path, 2) as there,
        agent(tmp_path / "slow", max_rate=40e6) as slow,
        sender_to([*there, slow]) as sender,
    ):
        result = sender.send_file(file, Route(choice()))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert all_have([*there, slow], file)


@EVERY
@pytest.mark.parametrize("struck", ["killed", "frozen"])
def test_killed_or_frozen_receiver_does_not_affect_others(
    tmp_path: Path, file: Path, choice: Callable[[], TransportChoice], struck: str
) -> None:
    # A receiver that a busy machine keeps from the processor for some seconds has not failed.
    timeout = HANGING if struck == "killed" else 8.0
    timings = SenderTimings(ready=HANGING, stall=timeout, freeze=timeout / 4)
    with (
        receiver_process(tmp_path / "p0", program=toy_transports.__name__) as victim,
        agents(tmp_path, 2) as there,
        sender_to([there[0], victim, there[1]], SenderSettings(LOOPBACK, MTU, timings)) as sender,
    ):
        with transfer(sender, file, Route(choice())) as one:
            one.reach(SIZE // 4)
            victim.process.send_signal(signal.SIGKILL if struck == "killed" else signal.SIGSTOP)
        assert one.reasons.keys() == {victim.name}
        assert all_have(there, file)


@EVERY
def test_interrupted_transfer_resumes_held_blocks(
    tmp_path: Path, file: Path, choice: Callable[[], TransportChoice]
) -> None:
    with agents(tmp_path, 2) as there:
        with sender_to(there, TOLERANT) as sender, transfer(sender, file, Route(choice())) as one:
            one.reach(SIZE // 4)
            one.route.give_up("the user canceled")
        assert one.reasons.keys() == {"r0", "r1"}
        assert all(event.failed() for event in there)
        with sender_to(there) as sender:
            assert sender.send_file(file, Route(choice())).complete == 2
            assert sum(one.received().resumed_blocks for one in there) > 0
            assert all_have(there, file)
            os.utime(file, ns=(1, 1))
            assert sender.send_file(file, Route(choice())).complete == 2
            assert all(one.received().resumed_blocks == 0 for one in there), "changed content starts from the beginning"


class Moved:
    """Bytes of blocks that left the sender on packet connections, however they went."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        take, read, repair = Link.take, Root._read, BlockReader.segments

        def taken(link: Link, intake: Intake) -> int:
            return self.note(take(link, intake))

        def dealt(root: Root, number: int) -> bytearray:
            data = read(root, number)
            self.note(len(data))
            return data

        def repaired(reader: BlockReader, first: int, count: int) -> memoryview:
            data = repair(reader, first, count)
            self.note(len(data))
            return data

        monkeypatch.setattr(Link, "take", taken)
        monkeypatch.setattr(Root, "_read", dealt)
        monkeypatch.setattr(BlockReader, "segments", repaired)

    def note(self, count: int) -> int:
        self.bytes += count
        return count


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """Return a file of 200 MiB with three pieces of data, one of them across the boundary of two blocks."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(SPARSE)
        for place in (0, 50 * BLOCK - 5000, SPARSE - 10_000):
            file.seek(place)
            file.write(os.urandom(10_000))
    return path


@OURS
@pytest.mark.parametrize("engine", BOTH)
def test_holes_of_a_sparse_file_are_not_sent_and_take_no_space(
    tmp_path: Path, sparse: Path, monkeypatch: pytest.MonkeyPatch, choice: Callable[[], TransportChoice], engine: str
) -> None:
    moved = Moved(monkeypatch)
    with asking_for(engine), agents(tmp_path, 3) as there, sender_to(there, TOLERANT) as sender:
        result = sender.send_file(sparse, Route(choice()))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        # A block at the beginning, two in the middle, and one or two at the end.
        max_data = 5 * BLOCK
        assert result.hole_bytes >= SPARSE - max_data
        assert result.datagrams * 1456 + moved.bytes <= len(there) * max_data
        assert result.resumed_bytes == 0 and all(one.received().resumed_blocks == 0 for one in there)
        for one in there:
            received = one.directory / sparse.name
            assert received.stat().st_blocks * 512 <= 2 * max_data
            assert filecmp.cmp(received, sparse, shallow=False)


@OURS
def test_sparse_file_is_resumed_and_handed_over(
    tmp_path: Path, content: bytes, choice: Callable[[], TransportChoice]
) -> None:
    """Its holes are looked for in what an earlier session left, and both transports leave them out."""
    path, data = tmp_path / "sparse", 8 * (SIZE // 4)
    with path.open("wb") as file:
        for place in range(8):
            file.seek(place * 4 * SIZE)
            file.write(content[: SIZE // 4])
        file.truncate(33 * SIZE)
    # Bytes that count as present from the beginning.
    holes = 33 * SIZE - data - 16 * BLOCK
    with agents(tmp_path, 2) as there:
        with sender_to(there, TOLERANT) as sender, transfer(sender, path, Route(choice())) as one:
            one.reach(holes + data // 4)
            one.route.give_up("the user canceled")
        assert all(event.failed() for event in there)
        with sender_to(there, TOLERANT) as sender, transfer(sender, path, Route(choice())) as one:
            one.reach(holes + data // 3)
            one.route.go(Unicast() if choice is not Unicast else Chain())
        assert one.reasons == {}
        assert one.result.hole_bytes >= holes
        assert all(event.received().resumed_blocks > 0 for event in there)
        for each in there:
            received = each.directory / path.name
            assert received.stat().st_blocks * 512 <= data + 32 * BLOCK
            assert filecmp.cmp(received, path, shallow=False)


def test_command_and_memory_receive_zeros_for_holes(tmp_path: Path, sparse: Path) -> None:
    os.truncate(sparse, SIZE)
    copied = tmp_path / "copied"
    with (
        agent(tmp_path / "a", commands={"copy": ("/bin/sh", "-c", f"cat > {copied}")}) as one,
        sender_to([one]) as sender,
    ):
        for destination in (Destination("memory", MEMORY), Destination("copy", COMMAND)):
            result = sender.send_file(sparse, Route(Chain()), destination)
            assert (result.complete, result.hole_bytes) == (1, 0)
        assert copied.read_bytes() == sparse.read_bytes()


@EVERY
def test_late_receiver_gets_complete_file(tmp_path: Path, file: Path, choice: Callable[[], TransportChoice]) -> None:
    with receiver_process(tmp_path / "late") as reserved:
        address = reserved.address
    settings = SenderSettings(LOOPBACK, MTU, SenderTimings(connect=HANGING))
    with agents(tmp_path, 2) as there, Sender([*(one.address for one in there), address], settings) as sender:
        with transfer(sender, file, Route(choice())) as one:
            one.reach(1)
            with receiver_process(tmp_path / "late", address[2], toy_transports.__name__) as late:
                eventually(lambda: any(late.directory.iterdir()), "the late one is invited")
                one.go_on()
                one.end()
                assert one.reasons == {}
                assert (late.directory / file.name).read_bytes() == file.read_bytes()
        assert all_have(there, file)
