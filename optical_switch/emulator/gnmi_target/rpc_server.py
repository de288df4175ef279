"""The gRPC server of gNMI on loopback, and its limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import grpc

from optical_switch.emulator.gnmi_target.service import GnmiService
from optical_switch.emulator.gnmi_target.subscriptions import SubscriptionService
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

SERVICE = "gnmi.gNMI"
MAX_RPCS = 256
"""RPCs at a time; gRPC refuses a further one with RESOURCE_EXHAUSTED. Subscriptions have a limit of their own."""
MAX_REQUEST_BYTES = 1 << 20
"""Bytes of one request: a Set with each port of a switch of 1008 by 1008 has some 300 KB."""
_OPTIONS = (("grpc.max_receive_message_length", MAX_REQUEST_BYTES), ("grpc.so_reuseport", 0))


@dataclass(frozen=True, slots=True)
class TargetTls:
    """The files for TLS.

    Parameters
    ----------
    certificate : Path
        Certificate of the target, in PEM.
    private_key : Path
        Its key, in PEM.
    client_ca : Path | None
        Authority of the clients' certificates, in PEM. None: clients need no certificate.
    """

    certificate: Path
    private_key: Path
    client_ca: Path | None = None


def credentials_of(tls: TargetTls) -> grpc.ServerCredentials:
    """Return the credentials of a server. Raises OSError if a file cannot be read."""
    pair = tls.private_key.read_bytes(), tls.certificate.read_bytes()
    ca = None if tls.client_ca is None else tls.client_ca.read_bytes()
    return grpc.ssl_server_credentials([pair], root_certificates=ca, require_client_auth=ca is not None)


@asynccontextmanager
async def rpc_server(
    service: GnmiService, subscriptions: SubscriptionService, credentials: grpc.ServerCredentials | None
) -> AsyncIterator[int]:
    """Serve gNMI until the block ends, without encryption if there are no credentials; yield the port on loopback."""
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=MAX_RPCS)
    methods = {
        "Capabilities": _unary(service.capabilities, gnmi.CapabilityRequest.FromString),
        "Get": _unary(service.get, gnmi.GetRequest.FromString),
        "Set": _unary(service.set, gnmi.SetRequest.FromString),
        "Subscribe": grpc.stream_stream_rpc_method_handler(
            subscriptions.subscribe,
            request_deserializer=gnmi.SubscribeRequest.FromString,
            response_serializer=_serialize,
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace=None)


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - named by protobuf


M = TypeVar("M")


def _unary(method: Callable[..., object], parse: Callable[[bytes], M]) -> grpc.RpcMethodHandler:
    return grpc.unary_unary_rpc_method_handler(method, request_deserializer=parse, response_serializer=_serialize)


def _serialize(message: _Message) -> bytes:
    return message.SerializeToString()
