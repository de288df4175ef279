"""What every carrier has to do, shown on all that there are and on two that this test adds from outside the package."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from blast_transport.base.engines import AUTO
from blast_transport.base.report import Progress
from blast_transport.carriers.choices import CarrierChoice, Chain, Dark, Tree, Trees, Unicast
from blast_transport.links.dialling import SOURCE
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.source import FileSource
from blast_transport.wire.carriers import CARRIERS
from blast_transport.wire.messages import COMMAND, MEMORY
from tests.support import toy_carriers
from tests.support.engines import asked_engine
from tests.support.toy_outside import Outside
from tests.support.toy_relay import Relay
from tests.support.transport_hosts import (
    LOOPBACK,
    MTU,
    PATIENCE,
    Agent,
    FaultyLight,
    Process,
    agent,
    agents,
    light,
    receiver_process,
    sender_to,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("every_engine")

SIZE = 3 << 20
LARGE = 20 << 20
"""More than may be under way along a pipeline that is left."""
BLOCK = 44 * 1456

HOSTS = ["a", "b", "late", "p0", "r0", "r1", "r2", "r3", "slow"]


def two_trees() -> Trees:
    """Two chains, there and back again: who is not there is left out."""
    chains = ([SOURCE, *HOSTS], [SOURCE, *reversed(HOSTS)])
    return Trees(tuple(Tree(800e6, dict(zip(chain[1:], chain, strict=False))) for chain in chains))


CHOICES: dict[str, Callable[[], CarrierChoice]] = {
    "optical": light,
    "pipeline": Chain,
    "trees": two_trees,
    "unicast": Unicast,
    "relay": Relay,
    "outside": Outside,
}
EVERY = pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
PAIRS = [(first, second) for first in CHOICES for second in CHOICES if first != second]


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(130).randbytes(SIZE)


class Halves(FileSource):
    """A file of which the second half is there when somebody says so."""

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self.whole = False

    @property
    def available(self) -> int:
        return self.size if self.whole else self.size // 2


class Transfer:
    """One in a thread of its own, of which the second half waits; so many receivers are not there yet."""

    def __init__(self, sender: Sender, path: Path, route: Route, late: int) -> None:
        self.route, self._sender, self._path, self._late = route, sender, path, late
        self._there = 0
        self._descriptor = os.open(path, os.O_RDONLY)
        self._source = Halves(path, self._descriptor)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def reach(self, size: int) -> None:
        """Wait until so much is at those receivers that are there."""
        eventually(lambda: self._there >= size, f"{size} bytes are there")

    def go_on(self) -> None:
        """The second half is there too."""
        self._source.whole = True
        self.route.wake()

    def _run(self) -> None:
        try:
            self.result = self._sender.transmit(self._source, self.route, Destination(self._path.name), self._note)
        finally:
            os.close(self._descriptor)

    def _note(self, progress: Progress) -> None:
        self._there = progress.median if self._late else progress.slowest

    def end(self) -> None:
        """Wait for its end."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    @property
    def reasons(self) -> dict[str, str]:
        """Why whoever failed did."""
        return {one.name: one.reason for one in self.result.receivers if not one.complete}


@contextmanager
def transfer(sender: Sender, path: Path, route: Route, late: int = 0) -> Iterator[Transfer]:
    one = Transfer(sender, path, route, late)
    try:
        yield one
    finally:
        one.go_on()
        one.end()


@contextmanager
def processes(folder: Path, number: int) -> Iterator[list[Process]]:
    with ExitStack() as stack:
        program = toy_carriers.__name__
        yield [stack.enter_context(receiver_process(folder / f"p{i}", program=program)) for i in range(number)]


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content"
    path.write_bytes(content)
    return path


@pytest.fixture
def large(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "large"
    path.write_bytes(content * (LARGE // SIZE))
    return path


def all_have(there: list[Agent], file: Path) -> bool:
    """And by the engine that was asked for, if that can be said."""
    if asked_engine() != AUTO:
        assert all(asked_engine() in one.engines for one in there if one.engines)
    return all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_all_carriers_are_here() -> None:
    assert set(CHOICES) == set(CARRIERS)


@EVERY
@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, SIZE])
def test_every_size_comes_whole_and_in_order(
    tmp_path: Path, content: bytes, choice: Callable[[], CarrierChoice], size: int
) -> None:
    file = tmp_path / "content"
    file.write_bytes(content[:size])
    copied = tmp_path / "copied"
    # One takes it in any order, one in memory, one in order by a pipe.
    with (
        agent(tmp_path / "a", commands={"copy": ("/bin/sh", "-c", f"cat > {copied}")}) as one,
        agent(tmp_path / "b", commands={"copy": ("/bin/sh", "-c", "cat > /dev/null")}) as other,
        sender_to([one, other]) as sender,
    ):
        for destination in (Destination("content"), Destination("memory", MEMORY), Destination("copy", COMMAND)):
            result = sender.send_file(file, Route(choice()), destination)
            assert [outcome.reason for outcome in result.receivers] == ["", ""]
        assert all_have([one, other], file)
        assert copied.read_bytes() == content[:size]


@EVERY
def test_loss_and_duplicates_change_nothing(tmp_path: Path, file: Path, choice: Callable[[], CarrierChoice]) -> None:
    """Where a carrier has datagrams; none of the others looks at this light."""
    with agents(tmp_path, 3, open_group=FaultyLight(0.05, 0.05, 0.01)) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(choice()))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert all_have(there, file)


@EVERY
def test_it_is_withdrawn_and_comes_back(tmp_path: Path, file: Path, choice: Callable[[], CarrierChoice]) -> None:
    with agents(tmp_path, 3) as there, sender_to(there) as sender:
        way = choice()
        with transfer(sender, file, Route(way)) as one:
            one.reach(SIZE // 4)
            one.route.go(Dark())
            one.route.go(way)
        assert one.reasons == {}
        assert all_have(there, file)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_each_hands_over_to_each_other(tmp_path: Path, large: Path, first: str, second: str) -> None:
    with agents(tmp_path, 3) as there, sender_to(there) as sender:
        with transfer(sender, large, Route(CHOICES[first]())) as one:
            one.reach(LARGE // 4)
            one.route.go(CHOICES[second]())
        assert one.reasons == {}
        assert one.result.carriers == (first, second)
        assert all_have(there, large)
        assert sum(outcome.refused for outcome in one.result.receivers) == 0


def test_a_carrier_is_planned_anew(tmp_path: Path, file: Path) -> None:
    with agents(tmp_path, 4) as there, sender_to(there) as sender:
        with transfer(sender, file, Route(Relay(1))) as one:
            one.reach(SIZE // 4)
            one.route.go(Relay(3))
        assert one.reasons == {}
        assert one.result.carriers == ("relay", "relay")
        assert all_have(there, file)


@EVERY
def test_a_slow_receiver_gets_all_of_it(tmp_path: Path, file: Path, choice: Callable[[], CarrierChoice]) -> None:
    with (
        agents(tmp_path, 2) as there,
        agent(tmp_path / "slow", highest_rate=40e6) as slow,
        sender_to([*there, slow]) as sender,
    ):
        result = sender.send_file(file, Route(choice()))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert all_have([*there, slow], file)


@EVERY
@pytest.mark.parametrize("struck", ["killed", "frozen"])
def test_one_that_is_struck_costs_nobody_else_its_data(
    tmp_path: Path, file: Path, choice: Callable[[], CarrierChoice], struck: str
) -> None:
    timings = SenderTimings(freeze=0.5, stall=2.0)
    with (
        processes(tmp_path, 1) as (victim,),
        agents(tmp_path, 2) as there,
        sender_to([there[0], victim, there[1]], SenderSettings(LOOPBACK, MTU, timings)) as sender,
    ):
        with transfer(sender, file, Route(choice())) as one:
            one.reach(SIZE // 4)
            victim.process.send_signal(signal.SIGKILL if struck == "killed" else signal.SIGSTOP)
        assert one.reasons.keys() == {victim.name}
        assert all_have(there, file)


@EVERY
def test_what_was_held_is_not_sent_again(tmp_path: Path, file: Path, choice: Callable[[], CarrierChoice]) -> None:
    with agents(tmp_path, 2) as there:
        with sender_to(there) as sender, transfer(sender, file, Route(choice())) as one:
            one.reach(SIZE // 4)
            one.route.give_up("somebody has changed his mind")
        assert one.reasons.keys() == {"r0", "r1"}
        assert all(event.failed() for event in there)
        with sender_to(there) as sender:
            assert sender.send_file(file, Route(choice())).complete == 2
        assert all(one.received().resumed_blocks > 0 for one in there)
        assert all_have(there, file)


@EVERY
def test_who_comes_late_gets_all_of_it(tmp_path: Path, file: Path, choice: Callable[[], CarrierChoice]) -> None:
    with receiver_process(tmp_path / "late") as reserved:
        address = reserved.address
    settings = SenderSettings(LOOPBACK, MTU, SenderTimings(connect=10.0))
    with agents(tmp_path, 2) as there, Sender([*(one.address for one in there), address], settings) as sender:
        with transfer(sender, file, Route(choice()), late=1) as one:
            one.reach(1)
            with receiver_process(tmp_path / "late", address[2], toy_carriers.__name__) as late:
                eventually(lambda: any(late.directory.iterdir()), "the late one is invited")
                one.go_on()
                one.end()
                assert one.reasons == {}
                assert (late.directory / file.name).read_bytes() == file.read_bytes()
        assert all_have(there, file)
