"""Receivers that are killed, stopped, slow, late, restarted or full, by every carrier; the others get it all, soon."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blast_transport.base.report import Received
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import Layout
from blast_transport.carriers.choices import CarrierChoice, Chain, Unicast
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.store.file_target import FileTarget
from tests.support.store_faults import before_writes
from tests.support.transport_hosts import (
    LOOPBACK,
    MTU,
    Agent,
    FaultyLight,
    agent,
    agents,
    light,
    receiver_process,
    sender_to,
    sending,
)
from tests.support.waiting import eventually

SIZE = 16 << 20
RATE = 300e6
TIMINGS = SenderTimings(connect=4.0, stall=4.0)
WAYS: dict[str, Callable[[], CarrierChoice]] = {"light": lambda: light(RATE), "pipeline": Chain, "unicast": Unicast}


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(79).randbytes(SIZE)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content.bin"
    path.write_bytes(content)
    return path


def partial(directory: Path, name: str) -> Path | None:
    return next((path for path in directory.glob(f".blast-*-{name}")), None)


def has_begun(directory: Path, name: str, size: int = 1 << 20) -> bool:
    found = partial(directory, name)
    return found is not None and found.stat().st_size >= size


def time_of(receivers: list[Agent]) -> float:
    """Seconds that the last of these needed."""
    return max(one.received().seconds for one in receivers)


@pytest.fixture
def slow_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unicast flies on loopback: writing takes its time, in this process, so that faults come in mid-transfer."""

    def slowly(_place: str, _offset: int, size: int) -> None:
        time.sleep(size / 130e6)  # a disk that is not infinitely fast

    before_writes(monkeypatch, slowly)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_receiver_hit_in_mid_transfer_harms_no_other(
    tmp_path: Path, file: Path, content: bytes, way: str, blow: signal.Signals, slow_disks: None
) -> None:
    with (
        receiver_process(tmp_path / "b-victim") as victim,
        agent(tmp_path / "a") as first,
        agent(tmp_path / "c") as last,
        sender_to([first, victim, last], SenderSettings(LOOPBACK, MTU, TIMINGS)) as sender,
    ):
        assert sender.send_file(file, Route(WAYS[way]())).complete == 3
        for one in (first, last):
            one.received()
        for one in (first, last, victim):
            (one.directory / file.name).unlink()
        with sending(sender, file, Route(WAYS[way]())) as results:
            eventually(lambda: has_begun(victim.directory, file.name))
            victim.process.send_signal(blow)
        result = results[0]
        for one in (first, last):
            one.received()
        outcomes = {outcome.name: outcome for outcome in result.receivers}
        if blow == signal.SIGKILL or not (victim.directory / file.name).exists():
            assert [one.complete for one in outcomes.values()] == [True, False, True]
            assert outcomes["b-victim"].reason
            assert not (victim.directory / file.name).exists()
        assert first.files() == last.files() == {file.name: content}
        # Nobody is left in a state that spoils the next transfer.
        again = sender.send_file(file, Route(Unicast()))
        assert [one.complete for one in again.receivers] == [True, False, True]


def test_a_stopped_receiver_recovers_for_the_next_transfer(tmp_path: Path, file: Path, content: bytes) -> None:
    timings = SenderTimings(ready=4.0, connect=4.0)
    with (
        receiver_process(tmp_path / "victim") as victim,
        sender_to([victim], SenderSettings(LOOPBACK, MTU, timings)) as sender,
    ):
        assert sender.connect() == {}
        victim.process.send_signal(signal.SIGSTOP)
        # On a busy machine its threads may go on for a moment.
        os.waitpid(victim.process.pid, os.WUNTRACED)
        assert "invitation" in sender.send_file(file, Route(light())).receivers[0].reason
        victim.process.send_signal(signal.SIGCONT)
        assert victim.said()["event"] == "failed"
        assert sender.send_file(file, Route(light())).complete == 1
        assert (victim.directory / file.name).read_bytes() == content


@pytest.mark.parametrize("way", list(WAYS))
def test_a_restarted_receiver_goes_on_with_what_it_holds(
    tmp_path: Path, file: Path, content: bytes, way: str, slow_disks: None
) -> None:
    with agent(tmp_path / "a") as steady, receiver_process(tmp_path / "b") as victim:
        settings = SenderSettings(LOOPBACK, MTU)
        with sender_to([steady, victim], settings) as sender:
            route = Route(light(100e6) if way == "light" else WAYS[way]())
            with sending(sender, file, route) as results:
                eventually(lambda: has_begun(victim.directory, file.name, SIZE // 4))
                victim.process.kill()
                victim.process.wait()
                with receiver_process(victim.directory, victim.port) as again:
                    eventually(lambda: bool(results))
                    outcomes = {outcome.name: outcome for outcome in results[0].receivers}
                    if not outcomes["b"].complete:
                        # It came back after everything had left.
                        assert outcomes["b"].reason
                        assert sender.send_file(file, Route(Unicast())).complete == 2
                    event = again.said()
                    while event["event"] != "received":
                        event = again.said()
                    resumed = event["bytes"], event["repaired"]
        assert resumed[0] == SIZE
        assert (victim.directory / file.name).read_bytes() == content
        assert steady.files() == {file.name: content}


def test_a_session_that_was_broken_off_is_gone_on_with_by_the_next_sender(
    tmp_path: Path, file: Path, content: bytes
) -> None:
    with agent(tmp_path / "r") as there:
        with sender_to([there]) as sender:
            route = Route(light(100e6))
            with sending(sender, file, route):
                eventually(lambda: has_begun(there.directory, file.name, SIZE // 4))
                route.give_up("enough for today")
            there.failed()
        with sender_to([there]) as sender:
            result = sender.send_file(file, Route(light()))
        event = there.received()
        assert event.resumed_blocks * 64_064 > SIZE // 5
        assert result.datagrams < SIZE // 1456 * 4 // 5
        assert there.files() == {file.name: content}
        os.utime(file, ns=(1, 1))
        with sender_to([there]) as sender:
            assert sender.send_file(file, Route(light())).complete == 1
        assert there.received().resumed_blocks == 0, "another content begins anew"


@pytest.mark.parametrize("way", ["light", "unicast"])
def test_a_late_receiver_gets_all_of_it(tmp_path: Path, file: Path, content: bytes, way: str, slow_disks: None) -> None:
    with agent(tmp_path / "a") as early, agent(tmp_path / "b") as placeholder:
        name, host, port = placeholder.address
    timings = SenderTimings(connect=0.3)
    with agent(tmp_path / "a") as early:
        with Sender([early.address, (name, host, port)], SenderSettings(LOOPBACK, MTU, timings)) as sender:
            shining = light(20e6)
            route = Route(shining if way == "light" else Unicast())
            with sending(sender, file, route) as results:
                eventually(lambda: has_begun(early.directory, file.name))
                if way == "light":
                    route.darken()  # for as long as a busy machine takes to start a process
                with receiver_process(tmp_path / "b", port):
                    if way == "light":
                        route.shine(shining)
                    eventually(lambda: bool(results))
            outcomes = {outcome.name: outcome for outcome in results[0].receivers}
        assert outcomes["a"].complete and early.files() == {file.name: content}
        if way == "light":
            assert outcomes["b"].complete, outcomes["b"].reason
            assert (tmp_path / "b" / file.name).read_bytes() == content
            assert 0 < outcomes["b"].repaired_bytes < SIZE


def test_a_throttled_store_is_served_later_and_the_others_keep_their_rate(
    tmp_path: Path, file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes a tenth of the light's rate."""

    def throttled(place: str, _offset: int, size: int) -> None:
        if "/slow/" in place:
            time.sleep(size * 8 / (RATE / 10))  # a slow disk

    before_writes(monkeypatch, throttled)
    with (
        agents(tmp_path, 2) as others,
        agent(tmp_path / "slow") as slow,
        sender_to([*others, slow], SenderSettings(LOOPBACK, MTU)) as sender,
    ):
        result = sender.send_file(file, Route(light(RATE)))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert [bool(outcome.demoted) for outcome in result.receivers] == [False, False, True]
        seconds = time_of(others)
        # A fifth of a second is the patience with it; a busy machine takes more. Its own disk takes 4.5 s.
        assert seconds < slow.received().seconds / 2
        assert slow.files() == {file.name: content}


def test_bytes_that_change_on_their_way_cost_a_repair_and_never_the_file(tmp_path: Path, content: bytes) -> None:
    """One receiver's network card flips a bit in half of all datagrams."""
    path = tmp_path / "file"
    path.write_bytes(content[: 1 << 20])
    with (
        agent(tmp_path / "good") as good,
        agent(tmp_path / "bad", FaultyLight(changed=0.5)) as bad,
        sender_to([good, bad]) as sender,
    ):
        result = sender.send_file(path, Route(light()))
        assert [outcome.reason for outcome in result.receivers] == ["", ""]
        assert bad.received().refused > 0 and good.received().refused == 0
        assert good.files() == bad.files() == {"file": content[: 1 << 20]}


@pytest.mark.parametrize("way", list(WAYS))
def test_a_store_that_fails_in_mid_transfer_is_that_receivers_reason(
    tmp_path: Path, file: Path, content: bytes, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a full or broken disk does."""

    def broken(place: str, offset: int, _size: int) -> None:
        if "/bad/" in place and offset > SIZE // 2:
            raise OSError(28, "No space left on device")

    before_writes(monkeypatch, broken)
    with agent(tmp_path / "bad") as bad, agent(tmp_path / "good") as good, sender_to([bad, good]) as sender:
        result = sender.send_file(file, Route(WAYS[way]()))
        assert [outcome.complete for outcome in result.receivers] == [False, True]
        assert "No space left" in result.receivers[0].reason
        assert "No space left" in bad.failed().reason
        assert isinstance(good.next_event(), Received)
        assert good.files() == {file.name: content}
        assert file.name not in bad.files()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs root")
@pytest.mark.parametrize("way", list(WAYS))
def test_a_full_disk_is_that_receivers_reason(tmp_path: Path, file: Path, content: bytes, way: str) -> None:
    """A file system of 8 MB: a file is refused at once; of another one that grows meanwhile it takes a part."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(small)], check=True)
    try:
        with agent(small) as full, agent(tmp_path / "good") as good, sender_to([full, good]) as sender:
            result = sender.send_file(file, Route(WAYS[way]()))
            assert [outcome.complete for outcome in result.receivers] == [False, True]
            assert "do not fit" in result.receivers[0].reason
            assert full.files() == {}
            assert good.files() == {file.name: content}
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_checking_what_is_there_may_take_longer_than_an_invitation_waits(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content[: 4 << 20])
    with agent(tmp_path / "r", timings=ReceiverTimings(silence=4.0)) as there:
        with sender_to([there]) as sender:
            route = Route(light(50e6))
            with sending(sender, path, route):
                eventually(lambda: has_begun(there.directory, path.name, 2 << 20))
                route.give_up("enough for today")
            there.failed()
        on_disk = FileTarget.blocks_on_disk

        def slowly(target: FileTarget, layout: Layout, suite: Suite) -> Iterator[tuple[int, bytes]]:
            for found in on_disk(target, layout, suite):
                time.sleep(0.06)  # a slow disk
                yield found

        monkeypatch.setattr(FileTarget, "blocks_on_disk", slowly)
        with sender_to([there], SenderSettings(LOOPBACK, MTU, SenderTimings(ready=1.0))) as sender:
            result = sender.send_file(path, Route(light()))
        assert result.receivers[0].reason == ""
        assert there.received().resumed_blocks > 20
