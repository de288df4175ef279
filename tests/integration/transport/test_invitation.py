"""Receivers that do not answer their invitation, or late: the others begin without them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from blast_transport.agent.targets import Targets
from blast_transport.base.precedence import BEST_EFFORT, EXPEDITED
from blast_transport.links.dialling import SOURCE, Address, dial
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.store.targets.target import Target
from blast_transport.transports.choices import Chain, TransportChoice, Tree, Trees, Unicast
from blast_transport.wire.messages import Hello
from tests.support.transport.transport_hosts import LOOPBACK, MTU, Agent, agents, light, sender_to, sending
from tests.support.waiting import HANGING, eventually

SIZE = 1 << 20
READY = 6.0
"""Seconds; a receiver that answers needs few of them, even on a busy machine."""
SETTINGS = SenderSettings(LOOPBACK, MTU, timings=SenderTimings(ready=READY))
FORTH, BACK = ({"r0": SOURCE, "r1": "r0", "r2": "r1"}, {"r2": SOURCE, "r1": "r2", "r0": "r1"})
TREES = Trees((Tree(400e6, FORTH), Tree(400e6, BACK)))
EVERY_TRANSPORT = pytest.mark.parametrize(
    "way", [light(), Chain(), TREES, Unicast()], ids=["light", "pipeline", "trees", "unicast"]
)


@pytest.fixture
def deaf() -> Iterator[tuple[str, str, int]]:
    """Yield the address of a host that accepts connections and never answers."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield ("deaf", *listener.getsockname())


@EVERY_TRANSPORT
def test_silent_receiver_fails_after_ready_timeout(
    tmp_path: Path, file: Path, deaf: tuple[str, str, int], way: TransportChoice
) -> None:
    """The others have it all before."""
    settings = replace(SETTINGS, timings=SenderTimings(ready=READY, stall=HANGING))
    with agents(tmp_path, 2) as there, Sender([*(one.address for one in there), deaf], settings) as sender:
        with sending(sender, file, Route(way)) as results:
            eventually(lambda: all(one.files() == {file.name: file.read_bytes()} for one in there))
            assert not results
        silent = f"did not answer the invitation within {READY:g} s"
        assert [outcome.reason for outcome in results[0].receivers] == ["", "", silent]


@EVERY_TRANSPORT
def test_receiver_that_answers_late_gets_complete_file(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, way: TransportChoice
) -> None:
    """Its directory takes its time: until the others have it all."""
    make = Targets.__call__
    others: list[Agent] = []

    def slow(self: Targets, hello: Hello) -> Target:
        target = make(self, hello)
        if Path(target.place).parent.name == "r1":
            eventually(lambda: all((one.directory / file.name).exists() for one in others), "the others' files")
        return target

    monkeypatch.setattr(Targets, "__call__", slow)
    settings = replace(SETTINGS, timings=SenderTimings(ready=2 * HANGING))
    with agents(tmp_path, 3) as there, sender_to(there, settings) as sender:
        others += there[0], there[2]
        result = sender.send_file(file, Route(way))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


@pytest.mark.parametrize(
    ("way", "precedence"), [(light(), EXPEDITED), (Chain(), BEST_EFFORT)], ids=["light", "pipeline"]
)
def test_only_optical_invitations_use_expedited_precedence(file: Path, way: TransportChoice, precedence: int) -> None:
    """Behind a flood of them it would be late; later connections have the same precedence."""
    sockets: list[socket.socket] = []

    def noted_dial(address: Address, timeout: float) -> socket.socket:
        sockets.append(dial(address, timeout))
        return sockets[-1]

    seen: list[int] = []
    settings = replace(SETTINGS, dialer=noted_dial, timings=SenderTimings(ready=5.0, connect=HANGING))
    with socket.create_server((LOOPBACK, 0)) as listener:

        def close_the_first() -> None:
            for number in range(2):
                sock, _ = listener.accept()
                with sock:
                    sock.recv(1)
                    seen.append(sockets[number].getsockopt(socket.IPPROTO_IP, socket.IP_TOS))

        thread = threading.Thread(target=close_the_first)
        thread.start()
        with Sender([("h", *listener.getsockname())], settings) as sender:
            assert sender.send_file(file, Route(way)).complete == 0
        thread.join(30)
    assert seen == [precedence] * 2


def test_unresolvable_and_unreachable_hosts_fail_at_once(tmp_path: Path, file: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as closed:
        unused = ("unused", *closed.getsockname())
    unknown = ("unknown", "host.invalid", 7000)
    with agents(tmp_path, 2) as there, Sender([*(one.address for one in there), unused, unknown], SETTINGS) as sender:
        result = sender.send_file(file, Route(light()))
        reasons = {outcome.name: outcome.reason for outcome in result.receivers}
        assert "Connection refused" in reasons["unused"] and "host.invalid:7000: " in reasons["unknown"]
        assert result.complete == 2
