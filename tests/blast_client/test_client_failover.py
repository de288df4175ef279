"""Several controllers: the client finds the leader, follows it, and never submits a request twice."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from blast_api import BlastOperator, ttypes
from blast_client import AsyncClient, Client, ControllerUnreachableError, MulticastRequest, NotLeader, TimedOut
from blast_client.api import failover
from blast_client.api.failover import Controllers, parse_addresses
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.waiting import eventually, eventually_async

LEADERS = ("submit", "request", "awaitEvent", "extend", "finish", "withdraw")
"""Methods that only a leader answers."""


def request(key: str = "k") -> MulticastRequest:
    return MulticastRequest(key, "h11", ["h21", "h31"], 10**8)


@dataclass
class Replicas:
    """Controllers with one memory, of which `leader` decides; `asked` lists (controller, method)."""

    shared: MemoryController
    addresses: list[str] = field(default_factory=list)
    servers: list = field(default_factory=list)
    leader: int = 0
    names_leader: bool = True
    asked: list[tuple[int, str]] = field(default_factory=list)
    newest: int = 0
    behind: dict[int, int] = field(default_factory=dict)
    """Missing journal entries of each controller; with `newest` 0, answers have no sequence number."""

    @property
    def text(self) -> str:
        return ",".join(self.addresses)


class Replica:
    def __init__(self, replicas: Replicas, number: int) -> None:
        self._replicas, self._number = replicas, number

    def __getattr__(self, name: str):
        if not hasattr(BlastOperator.Iface, name):
            raise AttributeError(name)

        def call(*arguments):
            replicas = self._replicas
            replicas.asked.append((self._number, name))
            if replicas.leader != self._number and name in LEADERS:
                raise ttypes.NotLeader(replicas.addresses[replicas.leader] if replicas.names_leader else None)
            answer = getattr(replicas.shared, name)(*arguments)
            if name == "status" and replicas.newest:
                answer.journalSequence = replicas.newest - replicas.behind.get(self._number, 0)
                answer.staleMs = None if replicas.leader == self._number else 10
            return answer

        return call

    def disconnected(self, connection) -> None:
        pass


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    with contextlib.ExitStack() as stack:
        found = Replicas(MemoryController(splitters=1))
        for number in range(3):
            server, host, port = stack.enter_context(serving(Replica(found, number)))
            found.servers.append(server)
            found.addresses.append(f"{host}:{port}")
        yield found


@pytest.fixture
def stopped() -> Iterator[str]:
    """Yield the address of a server that accepts connections and sends nothing, like a stopped controller."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(failover, "ANSWER_WITHIN", 0.1)
    monkeypatch.setattr(failover, "LONGEST_WAIT", 0.1)


def unused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_failover_stays_within_configured_controllers():
    a, b, c = parse_addresses("a,b,c")
    controllers = Controllers((a, b, c))
    controllers.move(a, "c")
    assert controllers.address == c
    controllers.move(a, None)
    assert controllers.address == c, "another call has moved it already"
    controllers.move(c, "elsewhere:1")
    assert controllers.address == a


def test_client_skips_replica_older_than_last_answer(replicas):
    replicas.newest, replicas.behind = 50, {1: 3, 2: 0}
    with Client(replicas.text) as client:
        client.submit(request())
        assert client.status("k").journalSequence == 50
        client.close()
        client._controllers.move(client.address, replicas.addresses[1])
        assert client.status("k").journalSequence == 50
        assert str(client.address) == replicas.addresses[2]


@pytest.mark.parametrize("names_leader", [True, False])
def test_client_finds_leader(replicas, names_leader):
    replicas.leader, replicas.names_leader = 2, names_leader
    with Client(replicas.text) as client:
        assert client.request(request(), timeout=5).key == "k"
        assert str(client.address) == replicas.addresses[2]
        assert client.finish("k").state == ttypes.PartState.DONE
    before = [number for number, _ in replicas.asked]
    assert before == [0, 2, 2] if names_leader else [0, 1, 2, 2]


def test_client_follows_takeover_without_duplicate_request(replicas):
    with Client(replicas.text) as client:
        grant = client.request(request(), timeout=5)
        replicas.leader = 1
        replicas.servers[0].stop()
        assert client.request(request(), timeout=5) == grant
        assert client.withdraw("k").state == ttypes.PartState.WITHDRAWN
    assert len(replicas.shared.requests) == 1


def test_client_does_not_repeat_withdraw_at_new_leader(replicas):
    with Client(replicas.text) as client:
        client.submit(request())
        withdraw, shared = replicas.shared.withdraw, replicas.servers[0]._shared

        def cut(*arguments):
            for connection in (old := set(shared.connections)):
                shared.loop.call_soon_threadsafe(connection.abort)
            eventually(lambda: not old & shared.connections, event="the end of the connection")
            replicas.leader = 1
            return withdraw(*arguments)

        replicas.shared.withdraw = cut
        with pytest.raises(ControllerUnreachableError, match="broke"):
            client.withdraw("k")
        eventually(lambda: client.status("k").state == ttypes.PartState.WITHDRAWN, event="the end of the call")
    assert sum(name == "withdraw" for _, name in replicas.asked) == 1


def test_client_skips_unreachable_and_silent_controllers(replicas, stopped, hurried):
    text = ",".join([unused(), stopped, replicas.text])
    with Client(text) as client:
        client.ping()
        assert client.request(request(), timeout=5).key == "k"


def test_client_repeats_request_to_detect_stopped_leader(replicas, stopped, hurried):
    with Client(replicas.text) as client:
        client.submit(request("first"))
        with pytest.raises(TimedOut):
            client.request(request(), timeout=0.5)
        assert sum(name == "request" for _, name in replicas.asked) > 2, "repeated to check that the leader is alive"
    assert len(replicas.shared.requests) == 2


def test_client_raises_last_error_if_no_controller_is_leader(replicas):
    replicas.leader = 7
    replicas.names_leader = False
    with Client(replicas.text, timeout=0.3) as client, pytest.raises(NotLeader):
        client.submit(request())
    assert {number for number, _ in replicas.asked} == {0, 1, 2}
    with Client(f"{unused()},{unused()}", timeout=0.3) as client, pytest.raises(ControllerUnreachableError):
        client.ping()


async def test_async_client_skips_replica_older_than_last_answer(replicas):
    replicas.newest, replicas.behind = 50, {1: 3}
    async with AsyncClient(replicas.text) as client:
        await client.submit(request())
        assert (await client.status("k")).journalSequence == 50
        await client.close()
        client._controllers.move(client.address, replicas.addresses[1])
        assert (await client.status("k")).journalSequence == 50
        assert str(client.address) == replicas.addresses[2]


async def test_parallel_calls_follow_leader_together(replicas, hurried):
    replicas.leader = 1
    async with AsyncClient(replicas.text) as client:
        await asyncio.gather(*(client.submit(request()) for _ in range(20)))
        assert str(client.address) == replicas.addresses[1]
        grant = await client.request(request(), timeout=5)
        waiting = asyncio.create_task(client.request(request("second"), timeout=20))
        await eventually_async(lambda: sum(name == "request" for _, name in replicas.asked) == 2, event="both calls")
        replicas.leader = 2
        assert await client.request(request(), timeout=5) == grant
        await client.withdraw("k")
        assert (await waiting).key == "second"
    assert len(replicas.shared.requests) == 2


async def test_async_client_skips_unreachable_and_silent_controllers(replicas, stopped, hurried):
    async with AsyncClient(",".join([stopped, unused(), replicas.text])) as client:
        await client.ping()
        assert (await client.request(request(), timeout=5)).key == "k"
    replicas.leader, replicas.names_leader = 7, False
    async with AsyncClient(replicas.text, timeout=0.3) as client:
        with pytest.raises(NotLeader):
            await client.submit(request())
