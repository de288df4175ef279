"""One client against the others over real Thrift: viewers that fill the places, floods, leaving with all at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport

from blast_api import BlastOperator, ttypes
from blast_client import Client, Ended, Extension, MulticastRequest, NotYet, Rejected
from blast_controller.core.model.settings import CoreSettings
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.rates import Rate
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime.waiting import Places
from blast_controller.store.details import read_page
from tests.support.core import make_fabric
from tests.support.runtime import running
from tests.support.waiting import eventually

CALLS = 300
LONG_MS = 3_600_000


@pytest.fixture
def lab():
    """All light is taken by one request; so many calls are free, and then one every eleven days."""
    with ExitStack() as stack:
        lab = stack.enter_context(running(make_fabric(4, [4]), CoreSettings(orphan_grace=0.05)))
        gate = Gate(OPEN_POLICY, ROLES, Rate(per_second=1e-6, burst=CALLS))
        lab.handler = BlastHandler(lab.runtime, "os-ken", partial(read_page, lab.store.journal), gate)
        server = FramedServer(BlastOperator, lab.handler, None, ttypes.Denied, Security(gate))
        stack.callback(server.stop)
        lab.host, lab.port = server.start(port=0)
        lab.client = stack.enter_context(Client(f"{lab.host}:{lab.port}"))
        lab.client.submit(wanted("first"))
        eventually(lambda: lab.client.status("first").state == ttypes.PartState.ACTIVE, what="the first grant")
        yield lab


def wanted(key: str) -> MulticastRequest:
    return MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], 10**9)


@contextmanager
def pipe(lab) -> Iterator[BlastOperator.Client]:
    """A connection on which calls are sent without waiting for their answers."""
    transport = TFramedTransport(TSocket(lab.host, lab.port))
    transport.open()
    try:
        yield BlastOperator.Client(TBinaryProtocolAccelerated(transport, fallback=False))
    finally:
        transport.close()


def refusals(recv, count: int) -> list[str]:
    codes = []
    for _ in range(count):
        with pytest.raises(ttypes.Rejected) as refused:
            recv()
        codes.append(refused.value.code)
    return codes


def test_viewers_leave_places_to_who_asks_for_light(lab):
    lab.runtime.waiting.places = Places(in_all=12, of_one=8)
    with pipe(lab) as viewer:
        for _ in range(10):
            viewer.send_awaitEvent("first", 1, LONG_MS)
        assert refusals(viewer.recv_awaitEvent, 4) == ["too_many_waiting"] * 4
        with pytest.raises(NotYet, match="Waiting for"):
            lab.client.request(wanted("k"), timeout=0.05)
        with pytest.raises(Rejected) as refused:
            lab.client.await_event("k", 0, timeout=60)
        assert refused.value.code == "too_many_waiting"
    eventually(lambda: is_let_look(lab), what="the viewer's places are free again")


def is_let_look(lab) -> bool:
    try:
        lab.client.await_event("first", 1, timeout=0.01)
    except NotYet:
        return True
    except Rejected:
        return False
    raise AssertionError("there is no event")


def test_a_connection_that_leaves_with_hundreds_of_waits_takes_them_all_with_it(lab):
    keys = [f"k{number}" for number in range(200)]
    with pipe(lab) as client:
        for key in keys:
            client.send_request(wanted(key), LONG_MS)
        eventually(lambda: lab.client.fabric().pendingRequests == len(keys), what="all wait")
    eventually(lambda: lab.client.fabric().pendingRequests == 0, what="all are withdrawn")
    with pytest.raises(Ended) as ended:
        lab.client.await_event("k7", 1, timeout=60)
    assert (ended.value.state, ended.value.reason) == (
        ttypes.PartState.WITHDRAWN,
        "The client vanished before the grant.",
    )
    attached = lab.handler._desk.attached
    assert (len(attached), attached._watched) == (0, set())


def test_a_flood_of_extensions_is_refused_and_others_go_on(lab):
    lab.client.submit(wanted("k"))
    with pipe(lab) as flood:
        for number in range(CALLS + 20):
            flood.send_extend("k", Extension(addMs=1))
            if number < CALLS - 2:
                flood.recv_extend()
        assert refusals(flood.recv_extend, 22) == ["too_many_calls"] * 22
    assert lab.client.status("k").latestSequence == CALLS - 2
    assert lab.client.await_event("k", 0, timeout=60).sequence == CALLS - 2 - 63
    assert lab.client.withdraw("k").state == ttypes.PartState.WITHDRAWN
