"""From a frame's body to an answer: decode, call the handler, encode. Runs in a worker; touches no socket."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from thrift.Thrift import TApplicationException, TMessageType

from blast_controller.rpc.connections.connection import AdmitAll, Connection, Guard, Handler
from blast_controller.rpc.connections.errors import CallRefusedError, HandlerError
from blast_controller.rpc.connections.messages import Call, ServiceCodec
from blast_controller.runtime.faults import logged

_NO_GUARD = AdmitAll()


@dataclass(frozen=True, slots=True)
class Reply:
    """A framed reply to write. `fault` is the cause of a failed call: "client" or "handler"."""

    frame: bytes
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The reply comes when `future` is done."""

    call: Call
    future: Future[object]


Answer = Reply | Deferred | None
"""None where no reply is due (oneway)."""


def answer(
    codec: ServiceCodec, handler: Handler, connection: Connection, body: bytes, guard: Guard = _NO_GUARD
) -> Answer:
    """Carry out the call in a frame's body, if the guard lets it pass.

    Raises `MalformedMessageError`.
    """
    header = codec.read_header(body)
    try:
        call = codec.read_call(header, body)
    except CallRefusedError as refusal:
        is_one_way = header.kind == TMessageType.ONEWAY
        return None if is_one_way else Reply(codec.refused(header, refusal.kind, str(refusal)), "client")
    try:
        guard.check(connection, call.method.name)
        codec.check_texts(call)
        value = getattr(handler, call.method.name)(connection, *call.arguments)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises, its caller gets an answer
        return error_reply(codec, call, error)
    return Deferred(call, value) if isinstance(value, Future) else _value_reply(codec, call, value)


def deferred_reply(codec: ServiceCodec, call: Call, future: Future[object]) -> Reply | None:
    """Return the reply to a deferred call whose future is done."""
    if future.cancelled():
        return error_reply(codec, call, HandlerError(f"{call.method.name} was cancelled by the server"))
    # To raise the error would tie it to this future by its frames.
    error = future.exception(timeout=0)
    if isinstance(error, Exception):
        return error_reply(codec, call, error)
    return _value_reply(codec, call, future.result(timeout=0))


def error_reply(codec: ServiceCodec, call: Call, error: Exception) -> Reply | None:
    """Return the reply that carries an exception: declared ones as they are, others only as an internal error."""
    if not call.expects_reply:
        logged(call.method.name, error)
        return None
    try:
        frame = codec.raised(call, error)
    except HandlerError as fault:
        return _internal_error(codec, call, fault)
    return Reply(frame) if frame is not None else _internal_error(codec, call, error)


def _value_reply(codec: ServiceCodec, call: Call, value: object) -> Reply | None:
    if not call.expects_reply:
        return None
    try:
        return Reply(codec.returned(call, value))
    except HandlerError as fault:
        return _internal_error(codec, call, fault)


def _internal_error(codec: ServiceCodec, call: Call, error: Exception) -> Reply | None:
    fault = logged(call.method.name, error)
    sentence = str(error) if isinstance(error, HandlerError) else str(fault)
    return Reply(codec.refused(call.header, TApplicationException.INTERNAL_ERROR, sentence), "handler")
