"""A gNMI server that answers as a test instructs it; it has no tables of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import grpc

from optical_switch.sonic_ocs.proto import gnmi_pb2 as api

Q = TypeVar("Q")
R = TypeVar("R")

SUPPORTED = api.CapabilityResponse(
    supported_models=[api.ModelData(name="sonic-ocs", organization="SONiC", version="2024-11-21")],
    supported_encodings=[api.JSON, api.JSON_IETF],
    gNMI_version="0.10.0",
)
SYNC = api.SubscribeResponse(sync_response=True)


class CallRefusedError(Exception):
    """Ends a call with a status."""

    def __init__(self, code: grpc.StatusCode, text: str = "") -> None:
        self.code = code
        self.text = text
        super().__init__(text)


Report = api.SubscribeResponse | bytes | CallRefusedError | None
"""A message of the subscription, or its end: with a status, or (None) without an error. Bytes are sent as they are."""


class ScriptedTarget:
    """The server. A test sets the answers, and reads the requests and the metadata of calls."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[Report] = asyncio.Queue()
        self.capabilities: api.CapabilityResponse | CallRefusedError = SUPPORTED
        self.set_answer: api.SetResponse | bytes | CallRefusedError = api.SetResponse()
        self.get_answer: api.GetResponse | CallRefusedError = api.GetResponse()
        self.silent = False
        """True if no call is answered any more."""
        self.requests: list[object] = []
        self.metadata: list[dict[str, str]] = []
        self.subscriptions = 0
        """Subscriptions that are open."""
        self.port = 0
        self._server = grpc.aio.server()
        self._never = asyncio.Event()

    async def start(self, credentials: grpc.ServerCredentials | None = None) -> None:
        handlers = {
            "Capabilities": self._unary(lambda: self.capabilities, api.CapabilityRequest),
            "Get": self._unary(lambda: self.get_answer, api.GetRequest),
            "Set": self._unary(lambda: self.set_answer, api.SetRequest),
            "Subscribe": grpc.stream_stream_rpc_method_handler(
                self._subscribe,
                request_deserializer=api.SubscribeRequest.FromString,
                response_serializer=_encoded,
            ),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("gnmi.gNMI", handlers),))
        if credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    def report(self, *messages: Report) -> None:
        for message in messages:
            self.reports.put_nowait(message)

    def sent(self, kind: type[R]) -> list[R]:
        """Return the requests of a type."""
        return [request for request in self.requests if isinstance(request, kind)]

    def _unary(self, answer: Callable[[], object], request: type[Q]) -> grpc.RpcMethodHandler:
        async def handle(received: Q, context: grpc.aio.ServicerContext) -> object:
            await self._note(received, context)
            found = answer()
            if isinstance(found, CallRefusedError):
                await context.abort(found.code, found.text)
            return found

        return grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=request.FromString,
            response_serializer=_encoded,
        )

    async def _subscribe(
        self, requests: AsyncIterator[api.SubscribeRequest], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.SubscribeResponse | bytes]:
        await self._note(await anext(requests), context)
        self.subscriptions += 1
        try:
            while (report := await self.reports.get()) is not None:
                if isinstance(report, CallRefusedError):
                    await context.abort(report.code, report.text)
                yield report
        finally:
            self.subscriptions -= 1

    async def _note(self, request: object, context: grpc.aio.ServicerContext) -> None:
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        if self.silent:
            await self._never.wait()


def _encoded(message: api.SubscribeResponse | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


def path(*names: str) -> api.Path:
    return api.Path(elem=[api.PathElem(name=name) for name in names])


def row(table: str, key: str, **columns: object) -> api.SubscribeResponse:
    """Return the report of a row, addressed by databases."""
    value = api.TypedValue(json_ietf_val=json.dumps(columns).encode())
    return reported(api.Update(path=path(table, key), val=value))


def reported(*updates: api.Update, delete: Sequence[api.Path] = (), atomic: bool = False) -> api.SubscribeResponse:
    notification = api.Notification(prefix=api.Path(target="STATE_DB"), update=updates, delete=delete, atomic=atomic)
    return api.SubscribeResponse(update=notification)
