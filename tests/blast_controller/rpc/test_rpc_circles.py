"""No call leaves a reference cycle: only garbage collection frees cycles, and it stops all clients.

The calls go over a real connection to the real server and handler, from a client that creates few objects.
"""

from __future__ import annotations

import gc
import socket
import ssl
import struct

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import BlastOperator, ttypes
from blast_controller.core.model.settings import CoreSettings
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.rates import Rate
from blast_controller.rpc.connections.connection import AdmitAll
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.methods import ROLES
from blast_controller.serving.tls import ServerTlsSettings
from tests.support.certificates import Authority
from tests.support.controller.core import make_fabric
from tests.support.controller.memory_controller import MemoryController
from tests.support.controller.runtime import TIMEOUT, running
from tests.support.waiting import eventually

CALLS = 40
UNDER_WAY = 8
"""Objects of a connection that may be just about to end."""


def multicast_request(key: str, size: int = 10**9) -> ttypes.MulticastRequest:
    return ttypes.MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], size)


def frame(method: str, *arguments: object) -> bytes:
    buffer = TMemoryBuffer()
    getattr(BlastOperator.Client(TBinaryProtocolAccelerated(buffer)), f"send_{method}")(*arguments)
    return struct.pack("!I", len(buffer.getvalue())) + buffer.getvalue()


@pytest.fixture
def lab():
    """All optical ports are reserved, and a request waits for them."""
    settings = CoreSettings(orphan_grace=0.01, remember_ended=0.01, lease_maximum=10**9)
    with running(make_fabric(3, [4]), settings) as lab:
        gate = Gate(OPEN_POLICY, ROLES, Rate(10**6, 10**6))
        handler = lab.make_handler(gate)
        server = FramedServer(BlastOperator, handler, None, ttypes.Denied, Security(gate))
        lab.server, lab.address = server, server.start(port=0)
        try:
            converse(
                lab, [frame("submit", multicast_request("lit", 10**15)), frame("submit", multicast_request("waits"))]
            )
            yield lab
        finally:
            server.stop()


def converse(lab, frames: list[bytes], answers: int | None = None) -> None:
    """Send all frames, read the answers, and close the connection."""
    with socket.create_connection(lab.address, TIMEOUT) as sock, sock.makefile("rb") as stream:
        for one in frames:
            sock.sendall(one)
        for _ in range(len(frames) if answers is None else answers):
            (length,) = struct.unpack("!I", stream.read(4))
            stream.read(length)
    eventually(lambda: lab.server.counters.connections == 0, event="the connection's end")


def unreachable_objects(lab, frames: list[bytes], answers: int | None = None) -> int:
    """Return the number of unreachable objects that the calls leave."""
    # Objects that the first calls create stay.
    converse(lab, frames[:2], 0)
    lab.settle()
    gc.collect()
    gc.disable()
    try:
        converse(lab, frames, answers)
        eventually(lambda: lab.look().pending_count == 1, event="the end of the calls' requests")
        lab.settle()
        return gc.collect()
    finally:
        gc.enable()


CONVERSATIONS = {
    "ping": [frame("ping")],
    "status": [frame("status", "lit")],
    "status of nothing": [frame("status", "unknown")],
    "fabric": [frame("fabric")],
    "listRequests": [frame("listRequests", None, 10, None)],
    "explain": [frame("explain", "waits")],
    "extend": [frame("extend", "waits", ttypes.Extension(addBytes=1))],
    "extend by nothing": [frame("extend", "waits", ttypes.Extension())],
    "request that is refused": [frame("request", ttypes.MulticastRequest("none", "r1h1", [], 1), 1000)],
    "request that is not granted in time": [frame("request", multicast_request("late"), 1)],
    "awaitEvent that is over at once": [frame("awaitEvent", "waits", 1 << 40, 0)],
    "submit and withdraw": [frame("submit", multicast_request("short")), frame("withdraw", "short")],
}


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=str)
def test_calls_leave_no_reference_cycle(lab, conversation):
    assert unreachable_objects(lab, CONVERSATIONS[conversation] * CALLS) <= UNDER_WAY


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"), "ca").issue("/CN=here", "IP:127.0.0.1")


def ping(address, context):
    """Complete a TLS handshake and one call."""
    with socket.create_connection(address, TIMEOUT) as sock, context.wrap_socket(sock) as secure:
        secure.sendall(frame("ping"))
        secure.recv(1000)


def send_garbage(address, context):
    with socket.create_connection(address, TIMEOUT) as sock:
        sock.sendall(b"no handshake at all" * 10)
        sock.recv(1000)


def send_nothing(address, context):
    socket.create_connection(address, TIMEOUT).close()


@pytest.mark.parametrize("visit", [ping, send_garbage, send_nothing])
def test_tls_clients_leave_no_reference_cycle(pair, visit):
    server = FramedServer(
        BlastOperator, MemoryController(), security=Security(AdmitAll(), ServerTlsSettings(pair.cert, pair.key))
    )
    address, context = server.start(port=0), ssl._create_unverified_context()

    def visited(times):
        ends = server.counters.accepted + server.counters.failed_handshakes + times
        for _ in range(times):
            visit(address, context)
        eventually(
            lambda: (
                server.counters.accepted + server.counters.failed_handshakes >= ends and not server.counters.connections
            ),
            event="the end of every connection",
        )

    try:
        visited(2)
        gc.collect()
        gc.disable()
        visited(CALLS)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert len(gc.garbage) <= UNDER_WAY
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        server.stop()


def test_disconnected_clients_with_waiting_calls_leave_no_cycle(lab):
    waiting = [frame("request", multicast_request(f"k{number}"), 10**6) for number in range(CALLS)]
    waiting += [frame("awaitEvent", "waits", 1 << 40, 10**6)] * CALLS
    assert unreachable_objects(lab, waiting, answers=0) <= UNDER_WAY
