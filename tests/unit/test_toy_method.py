"""What one more method takes, outside the package: a row of the server's table, a line and a call of the client's."""

from __future__ import annotations

import pytest

from blast_api import ttypes
from blast_client.aio import AsyncClient
from blast_client.arguments import check_call
from blast_client.base_error import WrongArgument
from blast_client.client import Client
from blast_client.errors import Denied
from blast_client.methods import SAFE_TO_REPEAT
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.kinds import looks
from blast_controller.rpc.methods import METHODS, Method, roles, table
from tests.support import toy_api
from tests.support.core import make_fabric
from tests.support.runtime import running

# ------------------------------------------------------------------------------------------------------- the server


def waiting(turn, client, tenant):
    """Parts that wait for light, of those that the client may see."""
    seen = client.only_tenant or tenant
    return turn.core.pending_count if seen is None else turn.core.pending_count_of(seen)


class ToyHandler(BlastHandler):
    methods = METHODS | table([Method(toy_api.Iface.waiting, looks(waiting), Role.VIEWER, feature="waiting")])


# ------------------------------------------------------------------------------------------------------- the client


class ToyClient(Client):
    _service = toy_api.Client
    _safe_to_repeat = SAFE_TO_REPEAT | {"waiting": True}

    def waiting(self, tenant=None):
        return self._call(toy_api.Iface.waiting, tenant)


class AsyncToyClient(AsyncClient):
    _service = toy_api.Client
    _safe_to_repeat = SAFE_TO_REPEAT | {"waiting": True}

    async def waiting(self, tenant=None):
        return await self._call(toy_api.Iface.waiting, tenant)


# -------------------------------------------------------------------------------------------------------- the proof


@pytest.fixture
def served():
    """One part has all light, two wait."""
    with running(make_fabric(3, [4])) as lab:
        gate = Gate(AccessPolicy(Identity("default", Role.OPERATOR)), roles(ToyHandler.methods))
        handler = ToyHandler(lab.runtime, "os-ken", lambda after, limit: (), gate)
        server = FramedServer(toy_api, handler, None, ttypes.Denied, Security(gate))
        host, port = server.start(port=0)
        try:
            with ToyClient(f"{host}:{port}") as client:
                for key in "abc":
                    client.submit(ttypes.MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], 10**12))
                client.await_event("a")
                yield client, gate
        finally:
            server.stop()


def test_the_new_method_is_served_beside_the_others(served):
    client, _ = served
    assert client.waiting("default") == 2
    assert client.waiting("nobody") == 0
    assert client.status("a").parts[0].grant is not None
    assert "waiting" in client.version().features


async def test_the_asyncio_client_calls_it_too(served):
    async with AsyncToyClient(str(served[0].address)) as client:
        assert await client.waiting("default") == 2
        await client.ping()


def test_its_role_is_asked_for(served):
    client, gate = served
    gate.policy = AccessPolicy()
    with pytest.raises(Denied, match="waiting is for clients with the role viewer"):
        client.waiting("default")


def test_its_arguments_are_checked_before_it_is_asked(served):
    with pytest.raises(WrongArgument, match="tenant must be a text"):
        served[0].waiting(7)


def test_a_handler_without_the_row_is_refused():
    gate = Gate(AccessPolicy(), roles(METHODS))
    with pytest.raises(TypeError, match="lacks waiting"):
        FramedServer(toy_api, BlastHandler(None, "os-ken", None, gate))


def test_the_arguments_of_a_method_are_found_beside_its_interface():
    check_call(toy_api.Iface.waiting, ("default",))
    check_call(toy_api.Iface.submit, (ttypes.MulticastRequest("k", "a", ["b"], 1),))
