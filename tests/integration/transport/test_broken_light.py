"""The kernel of the sender refuses optical sends: the transfer uses another transport, or raises the error."""

from __future__ import annotations

import errno
import math
import os
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from blast_transport.base.errors import LightPathError
from blast_transport.datagrams.interface import open_sender_socket
from blast_transport.session import light_retry, transfer
from blast_transport.session.route import Route
from blast_transport.session.settings import Destination
from blast_transport.store.sources.source import StreamSource
from blast_transport.transports.choices import Chain, Unicast
from blast_transport.transports.optical import sender as optical_sender
from tests.support.transport.transport_hosts import LOOPBACK, TOLERANT, FaultyLight, agents, light, sender_to, sending
from tests.support.waiting import eventually


class BreakingLight:
    """Opens sender's sockets of which the kernel refuses everything after the first `calls`, all of them together.

    After `refusals` of them it takes everything again. `opened` are counted.
    """

    def __init__(self, calls: int, refusals: float = math.inf) -> None:
        self.calls, self.refusals, self.opened = calls, refusals, 0

    def refuses(self) -> bool:
        """Return whether this call is refused."""
        if self.calls > 0 or self.refusals <= 0:
            return False
        self.refusals -= 1
        return True

    def __call__(self, interface_address: str, group: str, port: int) -> socket.socket:
        if self.refuses():
            raise LightPathError(f"cannot send to {group}:{port} by {interface_address}: {os.strerror(errno.ENODEV)}")
        self.opened += 1
        sock = _BreakingSocket(fileno=open_sender_socket(interface_address, group, port).detach())
        sock.breaking, sock.dead = self, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.dead.connect((LOOPBACK, 1))
        sock.dead.shutdown(socket.SHUT_WR)
        return sock


class _BreakingSocket(socket.socket):
    breaking: BreakingLight
    dead: socket.socket
    """The kernel itself refuses every send of this socket."""

    def sendmsg(self, *arguments: Any) -> int:
        if self.breaking.refuses():
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
        self.breaking.calls -= 1
        return super().sendmsg(*arguments)

    def fileno(self) -> int:
        """Return the descriptor by which the compiled engine sends a burst in one call."""
        if self.breaking.refuses():
            return self.dead.fileno()
        self.breaking.calls -= 1
        return super().fileno()

    def close(self) -> None:
        self.dead.close()
        super().close()


SIZE = 4 << 20
BLOCK_BYTES = 44 * 1456
SUPER_PACKETS = SIZE // BLOCK_BYTES
BROKEN = "No such device|Network is unreachable|Broken pipe"
FALLBACKS = pytest.mark.parametrize(("otherwise", "name"), [(Chain(), "pipeline"), (Unicast(), "unicast")])


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that makes the kernel refuse optical sends after `calls` calls, without retries."""
    monkeypatch.setattr(light_retry, "_WAITS", ())
    # The compiled engine is seen when it is called; here that is for every burst.
    monkeypatch.setattr(transfer, "_CARE_SECONDS", 0.0)
    return lambda calls: monkeypatch.setattr(optical_sender, "open_sender_socket", BreakingLight(calls))


@FALLBACKS
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_unsent_data_moves_to_fallback_transport(
    tmp_path: Path, file: Path, breaking: Callable[[int], None], share: float, otherwise: Chain | Unicast, name: str
) -> None:
    """Receivers also lose datagrams that the broken transport was to repair."""
    breaking(round(share * SUPER_PACKETS))
    reported: list[str] = []
    with agents(tmp_path, 3, open_group=FaultyLight(0.02)) as there, sender_to(there) as sender:
        route = Route(light(100e6), otherwise)
        route.on_broken = lambda: reported.append(route.broken)
        result = sender.send_file(file, route)
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert (result.transports[-1], route.reached) == (name, SIZE)
        assert reported == [route.broken]
        assert re.search(BROKEN, route.broken)
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_later_grant_does_not_resume_broken_optical_transport(
    tmp_path: Path, file: Path, breaking: Callable[[int], None]
) -> None:
    breaking(SUPER_PACKETS // 3)
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        route = Route(light(50e6), Chain())
        with sending(sender, file, route) as results:
            eventually(lambda: route.broken, "the optical transport to break")
            route.stop_optical()
            route.start_optical(light())
        assert (results[0].complete, results[0].transports) == (2, ("optical", "pipeline"))
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_optical_only_transfer_raises_error_of_kernel(
    tmp_path: Path, file: Path, breaking: Callable[[int], None]
) -> None:
    breaking(SUPER_PACKETS // 3)
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        with pytest.raises(LightPathError, match=BROKEN):
            sender.send_file(file, Route(light(100e6)))
        assert all(one.failed().reason for one in there)
        # The connections are usable: the next transfer resumes from the stored blocks.
        result = sender.send_file(file, Route(Chain()))
        assert result.complete == 2
        assert all(one.received().resumed_blocks > 0 for one in there)


@pytest.mark.parametrize("refusals", [1, 3])
def test_optical_transport_is_retried_after_brief_failure(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """The chain continues until optical sends work again, and no connection in it breaks."""
    breaking = BreakingLight(SUPER_PACKETS // 3, refusals)
    monkeypatch.setattr(optical_sender, "open_sender_socket", breaking)
    monkeypatch.setattr(light_retry, "_WAITS", (0.1,) * 3)
    content, reported, (reader, writer) = file.read_bytes(), list[str](), os.pipe()
    route = Route(light(100e6), Chain())
    route.on_broken = lambda: reported.append(route.broken)
    with (
        agents(tmp_path, 3) as there,
        sender_to(there, TOLERANT) as sender,
        os.fdopen(reader, "rb"),
        os.fdopen(writer, "wb") as feed,
        StreamSource(reader) as source,
        ThreadPoolExecutor() as thread,
    ):
        sent = thread.submit(sender.transmit, source, route, Destination("stream"))
        feed.write(content[: SIZE // 2])
        feed.flush()
        # Once to probe the interface, and once for the phase.
        eventually(lambda: breaking.opened == 3, "light that is tried again")
        feed.write(content[SIZE // 2 :])
        feed.close()
        result = sent.result()
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert result.transports == ("optical", "pipeline", "optical")
        assert result.repaired_bytes == 0
        assert (reported, route.broken, route.no_more_light) == ([], "", False)
        assert all(one.files() == {"stream": content} for one in there)
