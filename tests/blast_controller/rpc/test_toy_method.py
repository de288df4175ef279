"""Add a method outside the package: a row of the server's table, a line and a call of the client.

The interface with that method is as the compiler would write it:

service Toy extends BlastOperator {
  /** Pending parts of a tenant, or of all tenants. */
  i32 waiting(1: string tenant) throws (1: Denied denied)
}
"""

from __future__ import annotations

import sys

import pytest
from thrift.Thrift import TApplicationException, TMessageType, TType

from blast_api import BlastOperator, ttypes
from blast_api.ttypes import Denied as RawDenied
from blast_client.api.base_error import InvalidArgumentError
from blast_client.api.client import Client
from blast_client.api.errors import Denied
from blast_client.api.methods import SAFE_TO_REPEAT
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.kinds import looks
from blast_controller.rpc.methods import METHODS, RpcMethod, roles, table
from tests.support.controller.core import make_fabric
from tests.support.controller.runtime import running

# ---------------------------------------------------------------------------------------------- the generated code


class Iface(BlastOperator.Iface):
    def waiting(self, tenant):
        pass


class _Struct:
    """Read and written by the accelerated codec, as all that is generated."""

    def read(self, protocol):
        protocol._fast_decode(self, protocol, [type(self), self.thrift_spec])

    def write(self, protocol):
        protocol.trans.write(protocol._fast_encode(self, [type(self), self.thrift_spec]))

    def validate(self):
        pass


class waiting_args(_Struct):  # noqa: N801 - as the compiler names it
    thrift_spec = (None, (1, TType.STRING, "tenant", "UTF8", None))

    def __init__(self, tenant=None):
        self.tenant = tenant


class waiting_result(_Struct):  # noqa: N801 - as the compiler names it
    thrift_spec = (
        (0, TType.I32, "success", None, None),
        (1, TType.STRUCT, "denied", [RawDenied, RawDenied.thrift_spec], None),
    )

    def __init__(self, success=None, denied=None):
        self.success, self.denied = success, denied


class Generated(BlastOperator.Client, Iface):
    def waiting(self, tenant):
        self.send_waiting(tenant)
        return self.recv_waiting()

    def send_waiting(self, tenant):
        self._oprot.writeMessageBegin("waiting", TMessageType.CALL, self._seqid)
        waiting_args(tenant).write(self._oprot)
        self._oprot.writeMessageEnd()
        self._oprot.trans.flush()

    def recv_waiting(self):
        _, kind, _ = self._iprot.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(self._iprot)
            raise failure
        result = waiting_result()
        result.read(self._iprot)
        self._iprot.readMessageEnd()
        if result.denied is not None:
            raise result.denied
        return result.success


SERVICE = sys.modules[__name__]


# ------------------------------------------------------------------------------------------------------- the server


def waiting(context, client, tenant):
    """Return the number of pending parts that the client may see."""
    seen = client.only_tenant or tenant
    return context.core.pending_count if seen is None else context.core.pending_count_of(seen)


class ToyHandler(BlastHandler):
    methods = METHODS | table([RpcMethod(Iface.waiting, looks(waiting), Role.VIEWER, feature="waiting")])


# ------------------------------------------------------------------------------------------------------- the client


class ToyClient(Client):
    _service = Generated
    _safe_to_repeat = SAFE_TO_REPEAT | {"waiting": True}

    def waiting(self, tenant=None):
        return self._call(Iface.waiting, tenant)


# -------------------------------------------------------------------------------------------------------- tests


@pytest.fixture
def served():
    """One part reserves all optical ports, two wait."""
    with running(make_fabric(3, [4])) as lab:
        gate = Gate(AccessPolicy(Identity("default", Role.OPERATOR)), roles(ToyHandler.methods))
        handler = ToyHandler(lab.runtime, "os-ken", lambda after, limit: (), gate)
        server = FramedServer(SERVICE, handler, None, ttypes.Denied, Security(gate))
        host, port = server.start(port=0)
        try:
            with ToyClient(f"{host}:{port}") as client:
                for key in "abc":
                    client.submit(ttypes.MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], 10**12))
                client.await_event("a")
                yield client, gate
        finally:
            server.stop()


def test_server_serves_the_new_method(served):
    client, _ = served
    assert client.waiting("default") == 2
    assert client.waiting("unknown") == 0
    assert client.status("a").parts[0].grant is not None
    assert "waiting" in client.version().features


def test_new_method_requires_its_role(served):
    client, gate = served
    gate.policy = AccessPolicy()
    with pytest.raises(Denied, match="waiting requires the role viewer"):
        client.waiting("default")


def test_client_checks_the_arguments_of_the_new_method(served):
    with pytest.raises(InvalidArgumentError, match="tenant must be a text"):
        served[0].waiting(7)


def test_server_rejects_a_handler_without_the_new_row():
    gate = Gate(AccessPolicy(), roles(METHODS))
    with pytest.raises(TypeError, match="lacks waiting"):
        FramedServer(SERVICE, BlastHandler(None, "os-ken", None, gate))
