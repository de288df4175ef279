"""Multicast between agents on loopback: groups in use, receivers that it cannot reach, changes of the transport."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_client.send.round import DeliveryRound, RoundSettings
from blast_transport.base.engines import PYTHON
from blast_transport.base.report import Progress
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.sources.source import opened_file
from blast_transport.transports.choices import MULTICAST_PORT, Chain, MulticastChoice
from blast_transport.transports.multicast import sender as multicast_sender
from blast_transport.wire.groups import parse_groups
from blast_transport.wire.messages import COMMAND
from tests.support.transport.transport_hosts import (
    LOOPBACK,
    MTU,
    TIMEOUT,
    TOLERANT,
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
BLOCK_SEGMENTS = 44
LARGE = 16 << 20
"""From this size on "auto" multicasts."""


@contextmanager
def another_sender(group: str) -> Iterator[None]:
    """Send datagrams to the group until the end of the block; the first has left at its beginning."""
    begun, over = threading.Event(), threading.Event()

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
            while not over.wait(0.0005):
                sock.sendto(b"another sender", (group, MULTICAST_PORT))
                begun.set()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        assert begun.wait(TIMEOUT)
        yield
    finally:
        over.set()
        thread.join(TIMEOUT)


def test_group_with_datagrams_of_another_sender_is_replaced(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The random numbers are those of the groups 239.77.9.5 and .6, alternately."""
    numbers = itertools.cycle([5, 6])
    monkeypatch.setattr(multicast_sender.secrets, "randbits", lambda bits: next(numbers) if bits == 8 else 7)
    choice = MulticastChoice(parse_groups("239.77.9.0/24"))
    with agents(tmp_path, 2) as there, sender_to(there, TOLERANT) as sender, another_sender("239.77.9.5"):
        result = sender.send_file(file, Route(choice))
        assert result.transports == ("multicast", "multicast") and result.complete == 2
        (note,) = result.notes
        assert f"{LOOPBACK} sends to the group 239.77.9.5" in note and "another group is used" in note
        assert [outcome.demoted for outcome in result.receivers] == ["", ""]
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_pipeline_replaces_multicast_without_a_free_group(tmp_path: Path, file: Path) -> None:
    choice = MulticastChoice(parse_groups("239.77.10.5"), otherwise=Chain())
    route = Route(choice, choice)
    with agents(tmp_path, 2) as there, sender_to(there, TOLERANT) as sender, another_sender("239.77.10.5"):
        result = sender.send_file(file, route)
        assert result.transports == ("multicast", "multicast", "pipeline") and result.complete == 2
        assert "give another range by --groups" in result.notes[-1]
        assert route.otherwise == Chain(), "after a light tree, the group would be in use again"
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_pipeline_replaces_multicast_without_groups_of_the_receivers_ip_version(tmp_path: Path, file: Path) -> None:
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(MulticastChoice(parse_groups("ff15::/96"), otherwise=Chain())))
        assert result.transports == ("pipeline",) and result.complete == 2
        assert "--groups has no range of IPv4" in result.notes[-1]
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


@pytest.mark.parametrize("destination", [Destination("content"), Destination("copy", COMMAND)], ids=["file", "command"])
def test_pipeline_replaces_multicast_that_no_longer_reaches_receivers(
    tmp_path: Path, file: Path, destination: Destination
) -> None:
    """A switch that snoops without a querier forgets the memberships during the transfer."""
    network = FaultyLight()

    def forget(progress: Progress) -> None:
        if progress.slowest > 0:
            network.shares = (1.0, 0.0, 0.0)

    copies = {"copy": ("/bin/dd", "of=content", "status=none", "bs=64k")}
    with agents(tmp_path, 2, open_group=network, commands=copies) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(MulticastChoice(max_rate=20e6)), destination, forget)
        assert [outcome.reason for outcome in result.receivers] == ["", ""]
        assert result.transports == ("multicast", "pipeline")
        (note,) = result.notes
        assert "no longer reach any receiver" in note and "querier" in note
        assert all(one.files() == {"content": file.read_bytes()} for one in there)


def test_pipeline_replaces_multicast_to_a_group_that_no_receiver_can_join(tmp_path: Path, file: Path) -> None:
    def fail(*_: object) -> socket.socket:
        raise OSError(errno.ENOBUFS, "too many memberships")

    with agents(tmp_path, 2, open_group=fail) as there, sender_to(there, TOLERANT) as sender:
        result = sender.send_file(file, Route(MulticastChoice()))
        assert result.transports == ("multicast", "pipeline") and result.complete == 2
        assert "no receiver takes part" in result.notes[0]
        assert all("too many memberships" in outcome.demoted for outcome in result.receivers)


def test_pipeline_replaces_multicast_by_an_interface_of_another_ip_version(tmp_path: Path, file: Path) -> None:
    choice = MulticastChoice(interface_address="::1", otherwise=Chain())
    with agents(tmp_path, 2) as there, sender_to(there, TOLERANT) as sender:
        result = sender.send_file(file, Route(choice))
        assert result.transports == ("pipeline",) and result.complete == 2
        assert "give an address of the receivers' version" in result.notes[0]


def test_receiver_of_another_ip_version_gets_file_by_pipeline(tmp_path: Path, file: Path) -> None:
    with (
        agents(tmp_path, 2) as there,
        agent(tmp_path / "six", listens="::1") as six,
        sender_to([*there, six], TOLERANT) as sender,
    ):
        result = sender.send_file(file, Route(MulticastChoice()))
        assert result.transports == ("multicast", "pipeline") and result.complete == 3
        assert "different IP versions" in result.receivers[2].demoted
        assert result.repaired_bytes < SIZE / 10
        assert all(one.files() == {file.name: file.read_bytes()} for one in (*there, six))


@pytest.mark.parametrize(
    ("number", "size", "transport"), [(2, LARGE, "multicast"), (2, SIZE, "pipeline"), (1, LARGE, "pipeline")]
)
def test_auto_multicasts_large_files_to_several_receivers(
    tmp_path: Path, content: bytes, number: int, size: int, transport: str
) -> None:
    file = tmp_path / "content"
    file.write_bytes(content)
    os.truncate(file, size)
    settings = RoundSettings(controller=None, engine=PYTHON)
    with agents(tmp_path, number) as there, opened_file(file) as source:
        round_ = DeliveryRound([one.address for one in there], settings)
        done = asyncio.run(round_.deliver(source, Destination(file.name), lambda _receivers, _progress: None))
        (result,) = done.results
        assert result.transports == (transport,) and result.complete == number
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_transfer_moves_from_multicast_to_light_and_back_with_a_late_receiver(tmp_path: Path, content: bytes) -> None:
    large = tmp_path / "large"
    large.write_bytes(content * 4)
    with receiver_process(tmp_path / "late") as reserved:
        address = reserved.address
    settings = SenderSettings(LOOPBACK, MTU, SenderTimings(connect=HANGING, ready=30, stall=30, freeze=30, hold_up=30))
    with agents(tmp_path, 2) as there, Sender([*(one.address for one in there), address], settings) as sender:
        multicast = MulticastChoice()
        with transfer(sender, large, Route(multicast, multicast)) as one:
            one.reach(SIZE // 2)
            one.route.start_optical(light())
            with receiver_process(tmp_path / "late", address[2]) as late:
                eventually(lambda: any(late.directory.iterdir()), "the late receiver is invited")
                one.route.go_otherwise()
                one.go_on()
                one.end()
                assert one.reasons == {}
                assert (late.directory / large.name).read_bytes() == large.read_bytes()
        assert one.result.transports == ("multicast", "optical", "multicast")
        # A busy machine may deliver a segment after it was requested again.
        assert all(event.received().duplicates < 2 * BLOCK_SEGMENTS for event in there)
        assert one.result.datagrams < 1.05 * 4 * SIZE / 1456
        assert all(one_.files() == {large.name: large.read_bytes()} for one_ in there)
