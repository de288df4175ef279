"""Receivers behind rack leaders, over loopback: lost leaders and members do not affect the others. No root needed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from blast_transport.base.report import Progress, TransferResult
from blast_transport.links.dialling import SOURCE
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.transports.choices import Chain, TransportChoice, Tree, Trees, Unicast
from tests.support.transport.transport_hosts import LOOPBACK, Agent, Process, agent, light, receiver_process, transfer

SIZE = 2 << 20
RECEIVERS, RACKS = 12, 3
NAMES = [f"h{number}" for number in range(RECEIVERS)]
RACK_OF = {name: f"rack{number % RACKS}" for number, name in enumerate(NAMES)}
LEADERS = NAMES[:RACKS]
SETTINGS = SenderSettings(LOOPBACK, 9000, SenderTimings(ready=5.0, stall=5.0), racks=RACK_OF, max_direct=2)


@contextmanager
def hosts(tmp_path: Path, processes: Sequence[str] = ()) -> Iterator[dict[str, Agent | Process]]:
    """Receivers in this process, some in one of their own."""
    with ExitStack() as stack:
        make = {name: receiver_process if name in processes else agent for name in NAMES}
        yield {name: stack.enter_context(make[name](tmp_path / name)) for name in NAMES}


def trees() -> Trees:
    """Return two chains through the receivers, in opposite orders."""
    orders = ([SOURCE, *NAMES], [SOURCE, *reversed(NAMES)])
    return Trees(tuple(Tree(200e6, dict(zip(order[1:], order, strict=False))) for order in orders))


def sender_to(made: dict[str, Agent | Process], settings: SenderSettings = SETTINGS) -> Sender:
    return Sender([host.address for host in made.values()], settings)


def process_of(host: Agent | Process) -> subprocess.Popen[str]:
    assert isinstance(host, Process)
    return host.process


def complete(result: TransferResult) -> list[str]:
    return [outcome.name for outcome in result.receivers if outcome.complete]


def test_every_transport_reuses_connections_to_leaders(tmp_path: Path, file: Path) -> None:
    with hosts(tmp_path) as made, sender_to(made) as sender:
        assert sender.connect() == {}
        assert sender.connections == RACKS
        choices: list[TransportChoice] = [light(200e6), Unicast(), Chain(), trees(), light(200e6)]
        for number, way in enumerate(choices):
            result = sender.send_file(file, Route(way), Destination(f"copy{number}"))
            assert complete(result) == NAMES
        # On a busy machine one of them may have been silent for too long.
        assert RACKS <= sender.connections < RECEIVERS
        for host in made.values():
            for number in range(len(choices)):
                assert (host.directory / f"copy{number}").read_bytes() == file.read_bytes()
                assert isinstance(host, Agent) and host.received().digest


def test_sealed_session_completes_through_leaders(tmp_path: Path, file: Path) -> None:
    with hosts(tmp_path) as made, sender_to(made, replace(SETTINGS, sealed=True)) as sender:
        assert complete(sender.send_file(file, Route(light(200e6)))) == NAMES


@pytest.mark.parametrize(
    ("way", "blow"), [("light", signal.SIGKILL), ("chain", signal.SIGSTOP), ("trees", signal.SIGKILL)]
)
def test_losing_leader_and_member_in_mid_transfer_spares_others(
    tmp_path: Path, file: Path, way: str, blow: signal.Signals
) -> None:
    lost = (LEADERS[0], NAMES[4])
    choices: dict[str, TransportChoice] = {"light": light(40e6), "chain": Chain(), "trees": trees()}
    with hosts(tmp_path, lost) as made, sender_to(made) as sender:
        assert sender.connect() == {}
        with transfer(sender, file, Route(choices[way])) as one:
            one.reach(SIZE // 4)
            for name in lost:
                process_of(made[name]).send_signal(blow)
        result = one.result
        survivors = [name for name in NAMES if name not in lost]
        assert complete(result) == survivors
        for name in survivors:
            assert (made[name].directory / file.name).read_bytes() == file.read_bytes()
            host = made[name]
            assert isinstance(host, Agent) and host.received().resumed_blocks == 0, "its session has gone on"
            assert host.events.empty()
        for name in lost:
            assert not (made[name].directory / file.name).exists()


def test_members_of_leader_frozen_after_connect_complete(tmp_path: Path, file: Path) -> None:
    """Their invitations stay with it."""
    settings = replace(SETTINGS, timings=SenderTimings())
    with hosts(tmp_path, (LEADERS[0],)) as made, sender_to(made, settings) as sender:
        assert sender.connect() == {}
        process = process_of(made[LEADERS[0]])
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        result = sender.send_file(file, Route(light(200e6)))
        assert complete(result) == [name for name in NAMES if name != LEADERS[0]]


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_members_of_lost_leaders_complete(tmp_path: Path, file: Path, blow: signal.Signals) -> None:
    with hosts(tmp_path, tuple(LEADERS)) as made, sender_to(made) as sender:
        for name in LEADERS:
            process = process_of(made[name])
            process.send_signal(blow)
            if blow == signal.SIGKILL:
                process.wait()
        # The kernel of a process that is stopped still takes connections.
        assert set(sender.connect()) == (set(LEADERS) if blow == signal.SIGKILL else set())
        result = sender.send_file(file, Route(light(200e6)))
        assert complete(result) == [name for name in NAMES if name not in LEADERS]


class Vanished(BaseException):
    """The sender is gone."""


def test_receivers_fail_and_clean_up_when_sender_vanishes(tmp_path: Path, file: Path) -> None:
    def vanish(progress: Progress) -> None:
        if progress.slowest:
            raise Vanished

    with hosts(tmp_path) as made:
        with sender_to(made) as sender, pytest.raises(Vanished):
            sender.send_file(file, Route(light(20e6)), report=vanish)
        for host in made.values():
            assert isinstance(host, Agent) and host.failed().reason.startswith("control connection")
            assert not (host.directory / file.name).exists()
