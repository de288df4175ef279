"""A session to a SONiC switch by gNMI: one subscription that shows the state, and one `Set` for each change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import DecodeError

from blast_base.endpoint import Endpoint
from optical_switch.errors import (
    DeviceBusyError,
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SessionLimitError,
    UnreachableError,
)
from optical_switch.model import Circuit
from optical_switch.printable import printable
from optical_switch.session import BatchResult
from optical_switch.sonic_ocs.gnmi_messages import OcsRequests, changes_in, requests_for, rows_in
from optical_switch.sonic_ocs.proto import gnmi_pb2 as api
from optical_switch.sonic_ocs.refusals import grpc_error, refused_batch
from optical_switch.sonic_ocs.session import CHECK_SECONDS, OcsSession
from optical_switch.sonic_ocs.settings import GnmiSettings
from optical_switch.sonic_ocs.state import TableChange

MAX_MESSAGE_BYTES = 4 << 20
"""Largest message of the device: gRPC's default, and a hundred times the rows of a switch with 576 ports."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # The executor decides whether a transaction is sent again, and a proxy for web pages does not lead to a switch.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # A new session must not wait until the connection of an earlier one is tried again.
    ("grpc.use_local_subchannel_pool", 1),
)


class _ProtobufMessage(Protocol):
    """A message of protocol buffers."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - the name is that of protocol buffers
        """Return the message as it is sent."""

    @classmethod
    def FromString(cls: type[R], data: bytes) -> R:  # noqa: N802
        """Return the message that was sent."""


R = TypeVar("R", bound=_ProtobufMessage)


class GnmiSession(OcsSession):
    """A session by gNMI.

    Parameters
    ----------
    settings : GnmiSettings
        How the switch is reached.
    check_seconds : float
        Time between two checks of the connection.
    """

    def __init__(self, settings: GnmiSettings, check_seconds: float = CHECK_SECONDS) -> None:
        super().__init__(settings.target.name, check_seconds)
        self._settings = settings
        self._requests = OcsRequests(settings.origin)
        self._timeout = settings.target.timeout
        self._channel: grpc.aio.Channel | None = None
        self._subscription: grpc.aio.StreamStreamCall | None = None
        self._reader: asyncio.Task[None] | None = None
        login = settings.login
        self._metadata = (("username", login.user), ("password", login.password)) if login.user else ()

    async def _connect(self) -> None:
        self._channel = _channel(self._settings)
        capabilities = await self._call("Capabilities", api.CapabilityRequest(), api.CapabilityResponse)
        self._requests = requests_for(self._settings.origin, capabilities)
        self._subscription = self._channel.stream_stream(
            _path("Subscribe"),
            request_serializer=api.SubscribeRequest.SerializeToString,
            response_deserializer=_decoder(api.SubscribeResponse),
        )(metadata=self._metadata)
        synced = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(self._subscription, synced))
        await asyncio.wait({self._reader, synced}, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
        if self._reader.done() and not synced.done():
            try:
                self._reader.result()
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise SessionLimitError(printable(error.details() or "")) from error
                raise _meaning(error) from error
        if not synced.done():
            raise UnreachableError(f"the switch did not report its state within {self._timeout:g} s")
        self._start(self._follow)

    async def _disconnect(self) -> None:
        if self._subscription is not None:
            self._subscription.cancel()
        if self._reader is not None:
            # A read ends when gRPC has ended the call. Without the wait, tasks of gRPC would outlive the session.
            await asyncio.wait({self._reader})
            if not self._reader.cancelled():
                self._reader.exception()
        if self._channel is not None:
            await self._channel.close()

    async def _change(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        try:
            answer = await self._send("Set", self._requests.change(deletes, adds), api.SetResponse)
        except grpc.aio.AioRpcError as error:
            failure = _meaning(error)
            if isinstance(failure, UnreachableError | DeviceBusyError):
                raise failure from error
            return refused_batch(error.code().name, error.details() or "", deletes, adds)
        # An older way to refuse, which gNMI 0.10 has deprecated.
        failed = next((one for one in (answer, *answer.response) if one.message.code), None)
        if failed is not None:
            return refused_batch(f"gNMI {failed.message.code}", failed.message.message, deletes, adds)
        return BatchResult()

    async def _rows(self, table: str) -> Iterable[TableChange]:
        try:
            return list(rows_in(await self._call("Get", self._requests.rows(table), api.GetResponse)))
        except RefusedError as error:
            # gNMI 0.10, section 3.3.4: the path does not exist, because the table has no row.
            if error.code == "NOT_FOUND":
                return []
            raise

    async def _check(self) -> None:
        # Not a keepalive of HTTP/2: servers close connections with frequent ones, and answer them when the agent hangs.
        await self._call("Capabilities", api.CapabilityRequest(), api.CapabilityResponse)

    async def _read(self, subscription: grpc.aio.StreamStreamCall, synced: asyncio.Future[None]) -> None:
        """Take the first state, then the changes, until the call ends."""
        # If the call has ended already, reading shows the reason.
        with suppress(asyncio.InvalidStateError):
            await subscription.write(self._requests.subscribe())
        while True:
            is_end = self._take_response(await _response(subscription), silent=not synced.done())
            if is_end and not synced.done():
                synced.set_result(None)

    async def _follow(self) -> None:
        """Wait until the device ends the subscription; the reader runs on if this is cancelled."""
        assert self._reader is not None, "the session is connected"
        await asyncio.wait({self._reader})
        try:
            self._reader.result()
        except grpc.aio.AioRpcError as error:
            text = f"the switch ended the subscription ({error.code().name}): {printable(error.details() or '')}"
            raise UnreachableError(text) from error

    def _take_response(self, response: api.SubscribeResponse, *, silent: bool = False) -> bool:
        """Take a message of the subscription; return True at the end of the first state."""
        kind = response.WhichOneof("response")
        if kind == "error":
            raise UnreachableError(f"the switch ended the subscription: {printable(response.error.message)}")
        if kind == "update":
            self._take(changes_in(response.update), silent=silent)
        return bool(kind == "sync_response")

    async def _call(self, name: str, request: _ProtobufMessage, response: type[R]) -> R:
        try:
            return await self._send(name, request, response)
        except grpc.aio.AioRpcError as error:
            raise _meaning(error) from error

    async def _send(self, name: str, request: _ProtobufMessage, response: type[R]) -> R:
        assert self._channel is not None, "methods are called after open"
        method = self._channel.unary_unary(
            _path(name), request_serializer=type(request).SerializeToString, response_deserializer=_decoder(response)
        )
        answer: R | Exception = await method(request, timeout=self._timeout, metadata=self._metadata)
        return _decoded(answer)


def _meaning(error: grpc.aio.AioRpcError) -> OpticalSwitchError:
    return grpc_error(error.code().name, error.details() or "")


async def _response(subscription: grpc.aio.StreamStreamCall) -> api.SubscribeResponse:
    found = await subscription.read()
    if found is grpc.aio.EOF:
        raise UnreachableError("the switch ended the subscription")
    response: api.SubscribeResponse | Exception = found
    return _decoded(response)


def _decoder(message: type[R]) -> Callable[[bytes], R | Exception]:
    """Return a function that decodes a message, or returns the reason why it cannot: gRPC only logs an exception."""

    def decode(data: bytes) -> R | Exception:
        try:
            return message.FromString(data)
        except DecodeError:
            return ProtocolError("the switch sent a message that is none of gNMI")

    return decode


def _decoded(message: R | Exception) -> R:
    if isinstance(message, Exception):
        raise message
    return message


def _path(name: str) -> str:
    return f"/gnmi.gNMI/{name}"


def _channel(settings: GnmiSettings) -> grpc.aio.Channel:
    # Without a scheme, gRPC would take a host such as `unix` for one.
    address = f"dns:///{Endpoint(settings.target.host, settings.target.port)}"
    if settings.tls is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    key, certificate = (text.encode() or None for text in (settings.tls.private_key, settings.tls.certificate))
    credentials = grpc.ssl_channel_credentials(settings.tls.ca.encode(), key, certificate)
    return grpc.aio.secure_channel(address, credentials, options=_OPTIONS)
