"""The transport `trees` with real agents: any trees, hosts that are lost within them, edges that are broken."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from blast_transport.agent.settings import AgentClientSection
from blast_transport.base.report import Progress, TransferResult
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.roles import SENDER
from blast_transport.credentials.tls import TlsFiles
from blast_transport.links.dialling import SOURCE, Address
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.transports.choices import Tree, Trees
from blast_transport.transports.sight import PhaseMeasurement
from tests.support.certificates import Authority
from tests.support.controller.store_faults import before_writes
from tests.support.transport import transport_hosts
from tests.support.transport.transport_hosts import LOOPBACK, MTU, agent, agents, sender_to
from tests.support.waiting import HANGING, eventually

SIZE = 8 << 20
RATE = 100e6
HOSTS = tuple(f"r{place}" for place in range(7))


def any_tree(chance: random.Random, hosts: tuple[str, ...], rate: float) -> Tree:
    """Return a tree in random order, each host below a random earlier one."""
    order = list(hosts)
    chance.shuffle(order)
    return Tree(rate, {host: chance.choice([SOURCE, *order[:place]]) for place, host in enumerate(order)})


def chain(*hosts: str, rate: float = RATE) -> Tree:
    """Return a chain along these hosts."""
    return Tree(rate, dict(zip(hosts, (SOURCE, *hosts), strict=False)))


class Struck:
    """Calls an action once the median receiver has a third of the bytes."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self.done = False

    def __call__(self, progress: Progress) -> None:
        if not self.done and progress.median >= SIZE // 3:
            self.done = True
            self._action()


def assert_by_trees_alone(result: TransferResult, min_phases: int = 1) -> None:
    """Check for `min_phases` phases without repairs, or more: a host may seem frozen on a busy machine."""
    assert set(result.transports) == {"trees"}
    assert len(result.transports) > min_phases or (len(result.transports) == min_phases and result.repaired_bytes == 0)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_deliver_complete_file(tmp_path: Path, file: Path, content: bytes, seed: int) -> None:
    chance = random.Random(seed)
    hosts = HOSTS[: chance.randint(1, 7)]
    trees = tuple(any_tree(chance, hosts, 10 ** chance.uniform(7.5, 9)) for _ in range(chance.randint(1, 5)))
    with agents(tmp_path, len(hosts)) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(Trees(trees)))
        assert [outcome.reason for outcome in result.receivers] == [""] * len(hosts)
        assert_by_trees_alone(result)
        assert all(one.files() == {file.name: content} for one in there)


class BrokenEdges:
    """Makes dialers for agents, in the order of their names, that cannot reach some others."""

    def __init__(self, broken: dict[str, str]) -> None:
        self._broken, self._made = broken, 0
        self._make = transport_hosts.node_dialer

    def __call__(self, *arguments: Any) -> Callable[[Address, float], socket.socket]:
        own, dial = f"r{self._made}", self._make(*arguments)
        self._made += 1

        def broken(address: Address, seconds: float) -> socket.socket:
            if self._broken.get(own) == address[0]:
                raise ConnectionRefusedError("no way")
            return dial(address, seconds)

        return broken


def test_broken_edge_does_not_cause_repairs(
    tmp_path: Path, file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child is attached to the host above."""
    monkeypatch.setattr(transport_hosts, "node_dialer", BrokenEdges({"r1": "r2"}))
    seen: list[PhaseMeasurement] = []
    trees = (chain("r0", "r1", "r2", "r3"), chain("r3", "r2", "r1", "r0"))
    with agents(tmp_path, 4) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(Trees(trees, seen.append)))
        assert [outcome.reason for outcome in result.receivers] == [""] * 4
        assert any(("r1", "r2") in sight.broken for sight in seen)
        assert all(one.files() == {file.name: content} for one in there)
        assert_by_trees_alone(result, min_phases=2)


def test_host_that_accepts_no_connection_does_not_block_others(tmp_path: Path, file: Path, content: bytes) -> None:
    """Its only connection is that to the sender. If it were not blamed, the trees would be replanned for ever."""
    trees = tuple(chain(*order) for order in (("r0", "r1", "r2", "r3"), ("r3", "r2", "r1", "r0"), ("r1", "r2", "r0")))
    with ExitStack() as stack:
        there = [stack.enter_context(agent(tmp_path / f"r{n}", connections=1 if n == 2 else 64)) for n in range(4)]
        sender = stack.enter_context(sender_to(there))
        result = sender.send_file(file, Route(Trees(trees)))
        assert [outcome.reason for outcome in result.receivers] == [""] * 4
        assert all(one.files() == {file.name: content} for one in there)
        assert len(result.transports) <= 4, result.transports


class NarrowEdges:
    """Makes dialers whose connections to `narrow` are limited to `rate` bytes/s each, and counts them in `opened`."""

    def __init__(self, narrow: str, rate: float) -> None:
        self._narrow, self._rate = narrow, rate
        self._make = transport_hosts.node_dialer
        self.opened = 0

    def __call__(self, *arguments: Any) -> Callable[[Address, float], socket.socket]:
        dial = self._make(*arguments)

        def narrow(address: Address, seconds: float) -> socket.socket:
            far = dial(address, seconds)
            if address[0] != self._narrow:
                return far
            self.opened += 1
            near, middle = socket.socketpair()
            for end in (near, middle):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
            threading.Thread(target=self._relay, args=(middle, far), daemon=True).start()
            return near

        return narrow

    def _relay(self, middle: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=self._pump, args=(far, middle, 1e9), daemon=True)
        back.start()
        self._pump(middle, far, self._rate)
        back.join()
        middle.close()
        far.close()

    @staticmethod
    def _pump(one: socket.socket, other: socket.socket, rate: float) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 14):
                other.sendall(data)
                time.sleep(len(data) / rate)  # the rate of the path
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_slow_edge_opens_more_connections(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    dialers = NarrowEdges("r1", 8e5)
    monkeypatch.setattr(transport_hosts, "node_dialer", dialers)
    file = tmp_path / "content"
    file.write_bytes(content[: 3 << 20])
    seen: list[PhaseMeasurement] = []
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(Trees((chain("r0", "r1", rate=50e6),), seen.append)))
        assert [outcome.reason for outcome in result.receivers] == ["", ""]
        assert all(one.files() == {file.name: content[: 3 << 20]} for one in there)
    assert dialers.opened >= 3
    held = {(flow.parent, flow.child) for sight in seen for flow in sight.flows if flow.held_back}
    assert held == {("r0", "r1")}


def test_trees_deliver_file_over_mutual_tls(tmp_path: Path, content: bytes) -> None:
    """Every connection is encrypted, and each host proves its name."""
    file = tmp_path / "content"
    file.write_bytes(content)
    authority = Authority(tmp_path / "ca", "ca")

    def credentials(name: str, unit: str) -> TlsFiles:
        pair = authority.issue(f"/OU={unit}/CN={name}", f"DNS:{name}" if unit == "hosts" else "")
        pair.key.chmod(0o600)
        return TlsFiles(pair.cert, pair.key, authority.cert)

    clients = [
        AgentClientSection(organizational_unit="heads", role=SENDER),
        AgentClientSection(organizational_unit="hosts", role="neighbor"),
    ]
    ours = credentials("head", "heads")
    with ExitStack() as stack:
        there = [
            stack.enter_context(agent(tmp_path / name, credentials=credentials(name, "hosts"), clients=clients))
            for name in HOSTS[:4]
        ]
        settings = SenderSettings(dialer=dialer(ours), credentials=ours)
        trees = (chain(*HOSTS[:4], rate=400e6), Tree(400e6, {"r3": SOURCE, "r0": "r3", "r1": "r3", "r2": "r3"}))
        with Sender([one.address for one in there], settings) as sender:
            result = sender.send_file(file, Route(Trees(trees)))
        assert [outcome.reason for outcome in result.receivers] == [""] * 4
        assert_by_trees_alone(result)
        assert all(one.files() == {file.name: content} for one in there)


def test_hosts_with_resumed_blocks_need_no_repairs_of_sender(tmp_path: Path, file: Path, content: bytes) -> None:
    """An earlier transfer reached two of three; the third gets it from them, and the sender's data is not repaired."""
    trees = Trees((chain("r0", "r1", "r2"), chain("r1", "r2", "r0")))
    with agents(tmp_path, 3) as there:
        with sender_to(there[:2]) as sender:
            route = Route(Trees((chain("r0", "r1"),)))
            give_up = Struck(lambda: route.give_up("the user canceled"))
            sender.send_file(file, route, report=give_up)
        assert all(one.failed() for one in there[:2])
        with sender_to(there) as sender:
            result = sender.send_file(file, Route(trees))
        assert [outcome.reason for outcome in result.receivers] == [""] * 3
        assert result.repaired_bytes == 0
        assert all(one.received().resumed_blocks > 0 for one in there[:2])
        assert all(one.files() == {file.name: content} for one in there)


@pytest.mark.parametrize("victim", ["r1", "r2"])
def test_hanging_store_does_not_block_other_hosts(
    tmp_path: Path, file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """In the middle, or at the end: its parents let it go, and it gets what it lacks when it takes it again."""
    gate = threading.Event()

    def hanging(place: str, offset: int, _size: int) -> None:
        if f"/{victim}/" in place and offset > SIZE // 4:
            gate.wait(HANGING)

    before_writes(monkeypatch, hanging)
    monkeypatch.setattr("blast_transport.store.blocks.eager_writer._is_slow", lambda *_: True)
    settings = SenderSettings(LOOPBACK, MTU, SenderTimings(ready=HANGING, stall=HANGING, freeze=HANGING))
    with agents(tmp_path, 3) as there, sender_to(there, settings) as sender:

        def release() -> None:
            others = [one for one in there if one.name != victim]
            eventually(lambda: all(sum(map(len, one.files().values())) >= SIZE for one in others), "the others' files")
            gate.set()

        # The sender's own thread reports progress, and must not wait.
        waiting = threading.Thread(target=release)

        def begin_to_wait(progress: Progress) -> None:
            if victim in progress.demoted and waiting.ident is None:
                waiting.start()

        try:
            result = sender.send_file(file, Route(Trees((chain("r0", "r1", "r2"),))), report=begin_to_wait)
        finally:
            gate.set()
        waiting.join()
        assert {one.name: one.demoted for one in result.receivers}[victim].startswith("its store has accepted nothing")
        assert [outcome.reason for outcome in result.receivers] == [""] * 3
        assert all(one.files() == {file.name: content} for one in there)
