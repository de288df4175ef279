"""Receivers that are stopped, restarted or full, by every transport: the others complete, and they resume."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blast_transport.base.report import Received
from blast_transport.blocks.digests import Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.route import Route
from blast_transport.session.settings import SenderSettings
from blast_transport.store.targets.file_target import FileTarget
from blast_transport.transports.choices import Chain, TransportChoice, Unicast
from tests.support.controller.store_faults import before_writes
from tests.support.transport.transport_hosts import LOOPBACK, MTU, agent, light, receiver_process, sender_to, sending
from tests.support.waiting import eventually

SIZE = 4 << 20
RATE = 40e6
CHOICES: dict[str, Callable[[], TransportChoice]] = {
    "light": lambda: light(RATE),
    "pipeline": Chain,
    "unicast": Unicast,
}


def partial(directory: Path, name: str) -> Path | None:
    return next((path for path in directory.glob(f".blast-*-{name}")), None)


def has_begun(directory: Path, name: str, size: int = 1 << 18) -> bool:
    found = partial(directory, name)
    return found is not None and found.stat().st_size >= size


def test_stopped_receiver_recovers_for_next_transfer(tmp_path: Path, file: Path, content: bytes) -> None:
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
        assert victim.next_line()["event"] == "failed"
        assert sender.send_file(file, Route(light())).complete == 1
        assert (victim.directory / file.name).read_bytes() == content


@pytest.mark.parametrize("way", list(CHOICES))
def test_store_failure_in_mid_transfer_fails_only_its_receiver(
    tmp_path: Path, file: Path, content: bytes, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full or broken disk has this effect."""

    def broken(place: str, offset: int, _size: int) -> None:
        if "/bad/" in place and offset > SIZE // 2:
            raise OSError(28, "No space left on device")

    before_writes(monkeypatch, broken)
    with agent(tmp_path / "bad") as bad, agent(tmp_path / "good") as good, sender_to([bad, good]) as sender:
        result = sender.send_file(file, Route(CHOICES[way]()))
        assert [outcome.complete for outcome in result.receivers] == [False, True]
        assert "No space left" in result.receivers[0].reason
        assert "No space left" in bad.failed().reason
        assert isinstance(good.next_event(), Received)
        assert good.files() == {file.name: content}
        assert file.name not in bad.files()


def test_check_of_existing_blocks_may_exceed_ready_timeout(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with agent(tmp_path / "r", timings=ReceiverTimings(silence=4.0)) as there:
        with sender_to([there]) as sender:
            route = Route(light(RATE))
            with sending(sender, path, route):
                eventually(lambda: has_begun(there.directory, path.name, 2 << 20))
                route.give_up("enough for today")
            there.failed()
        on_disk = FileTarget.blocks_on_disk

        def slowly(target: FileTarget, layout: BlockLayout, suite: Suite) -> Iterator[tuple[int, bytes]]:
            for found in on_disk(target, layout, suite):
                time.sleep(0.06)  # a slow disk
                yield found

        monkeypatch.setattr(FileTarget, "blocks_on_disk", slowly)
        with sender_to([there], SenderSettings(LOOPBACK, MTU, SenderTimings(ready=1.0))) as sender:
            result = sender.send_file(path, Route(light()))
        assert result.receivers[0].reason == ""
        assert there.received().resumed_blocks > 20
