"""Thrift messages of one service, bytes to calls and results to bytes, with Apache Thrift's accelerated codec.

Generic over the modules that the Thrift compiler generates, inheritance included: the methods are those of the
module's `Iface`, their argument and result structs stand beside it. Binary and compact protocol are told apart by
the first byte of a message; a reply speaks the protocol of its call.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import ClassVar, Protocol

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolBase, TProtocolException
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

from blast_controller.rpc.connections.errors import CallRefused, HandlerFault, MalformedMessage
from blast_controller.rpc.connections.frames import FRAME_BYTES, encode_frame

Spec = tuple[tuple[int, int, str, object, object] | None, ...]
"""Of each field its number, type, name, what the type is of, and default."""


class Struct(Protocol):
    """What the compiler makes of a struct."""

    thrift_spec: ClassVar[Spec]

    def __init__(self, **fields: object) -> None: ...

    def read(self, iprot: TProtocolBase) -> None:
        """Take what is there."""

    def write(self, oprot: TProtocolBase) -> None:
        """Encode it."""


_PROTOCOLS: Mapping[int, Callable[..., TProtocolBase]] = {
    0x80: TBinaryProtocolAccelerated,
    0x82: TCompactProtocolAccelerated,
}

_REPLACEMENT = "\ufffd"

# The header is decoded in Python, where a compact integer of a megabyte would take minutes: it gets to see no more.
_HEADER_BYTES = 256

_UNREADABLE = (
    TProtocolException,
    TTransportException,
    EOFError,
    ValueError,
    OverflowError,
    TypeError,
    AssertionError,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a service. `result` is None for a oneway method; `errors` are its declared exceptions by field."""

    name: str
    arguments: type[Struct]
    result: type[Struct] | None
    errors: Mapping[str, type[Exception]]
    returns_value: bool

    def answer(self, **fields: object) -> Struct:
        """What a reply carries, with these fields. Raises HandlerFault where no reply is due."""
        if self.result is None:
            raise HandlerFault(f"{self.name} is not answered")
        return self.result(**fields)

    def field_of(self, error: BaseException) -> str | None:
        """The result field that carries `error`, None if the interface does not declare it."""
        return next((field for field, declared in self.errors.items() if isinstance(error, declared)), None)


@dataclass(frozen=True, slots=True)
class Header:
    """What stands in front of every message."""

    protocol: Callable[..., TProtocolBase]
    name: str
    kind: int
    sequence: int
    length: int


@dataclass(frozen=True, slots=True)
class Call:
    """A decoded call."""

    header: Header
    method: Method
    arguments: tuple[object, ...]

    @property
    def wants_reply(self) -> bool:
        """The client reads a reply: it would take one to a one-way call for the reply to its next call."""
        return self.method.result is not None and self.header.kind != TMessageType.ONEWAY


def _too_many_waits(sentence: str) -> Exception:
    error: Exception = TApplicationException(TApplicationException.INTERNAL_ERROR, sentence)
    return error


def _bad_text(_field: str, sentence: str) -> Exception:
    error: Exception = TApplicationException(TApplicationException.PROTOCOL_ERROR, sentence)
    return error


@dataclass(frozen=True, slots=True)
class Refusals:
    """Make the exceptions of refusals that no handler decides; best are those that the interface declares.

    `too_many_waits`: for a call that would be parked beyond the limits, from a sentence. `bad_text`: for a text that is
    not UTF-8, from the name of its field and a sentence.
    """

    too_many_waits: Callable[[str], Exception] = _too_many_waits
    bad_text: Callable[[str, str], Exception] = _bad_text


class ServiceCodec:
    """Decodes the calls and encodes the replies of one generated service module.
    Raises ImportError where Apache Thrift came without its accelerated codec: the slow one is never taken in silence.
    """

    def __init__(self, module: ModuleType, frame_bytes: int = FRAME_BYTES, refusals: Refusals | None = None) -> None:
        for protocol in _PROTOCOLS.values():
            protocol(TMemoryBuffer(), fallback=False)
        self.methods = _methods_of(module)
        self._frame_bytes = frame_bytes
        self.refusals = refusals or Refusals()
        # Four bytes are the smallest element of any list in an interface without lists of numbers or booleans.
        self._limits = {"string_length_limit": frame_bytes, "container_length_limit": frame_bytes // 4}

    def read_header(self, body: bytes) -> Header:
        """Read a message's header; `body` may be just its beginning.

        Raises `MalformedMessage`.
        """
        protocol = _PROTOCOLS.get(body[0]) if body else None
        if protocol is None:
            raise MalformedMessage("neither binary nor compact Thrift protocol")
        buffer = TMemoryBuffer(body[:_HEADER_BYTES])
        try:
            name, kind, sequence = protocol(buffer, fallback=False, **self._limits).readMessageBegin()
        except _UNREADABLE as error:
            raise MalformedMessage(f"unreadable message header ({_describe(error)})") from error
        if not -(1 << 31) <= sequence < 1 << 31:
            raise MalformedMessage(f"sequence number {sequence} has more than 32 bits")
        return Header(protocol, name, kind, sequence, buffer.cstringio_buf.tell())

    def read_call(self, header: Header, body: bytes) -> Call:
        """Decode the call behind `header`.

        Raises `CallRefused` when it can be answered with a typed error, `MalformedMessage` when it cannot.
        """
        method = self.methods.get(header.name)
        if method is None:
            raise CallRefused(TApplicationException.UNKNOWN_METHOD, f"unknown method {header.name!r}")
        if header.kind not in (TMessageType.CALL, TMessageType.ONEWAY):
            raise CallRefused(TApplicationException.INVALID_MESSAGE_TYPE, f"message type {header.kind} is no call")
        arguments = self._read_arguments(header, method, body)
        try:
            check_required_fields(arguments)
        except TProtocolException as error:
            raise CallRefused(TApplicationException.PROTOCOL_ERROR, str(error.message)) from error
        return Call(
            header, method, tuple(getattr(arguments, name) for name in _field_names(method.arguments.thrift_spec))
        )

    def check_texts(self, call: Call) -> None:
        """Raise what `bad_text` makes if a text of the call is not UTF-8, or a `TApplicationException`."""
        names = _field_names(call.method.arguments.thrift_spec)
        for name, value in zip(names, call.arguments, strict=True):
            field = find_undecodable(value, name)
            if field is not None:
                sentence = f"The text {field!r} is not UTF-8; encode it as UTF-8."
                error = self.refusals.bad_text(field, sentence)
                raise _bad_text(field, sentence) if call.method.field_of(error) is None else error

    def returned(self, call: Call, value: object) -> bytes:
        """Encode a return value as a framed reply.

        Raises `HandlerFault` for a value that the interface does not allow.
        """
        if not call.method.returns_value:
            return self._framed(call.header, TMessageType.REPLY, call.method.answer())
        if value is None:
            raise HandlerFault(f"{call.method.name} returned nothing")
        try:
            check_required_fields(value)
        except TProtocolException as error:
            raise HandlerFault(f"{call.method.name} returned an incomplete result: {error.message}") from error
        return self._framed(call.header, TMessageType.REPLY, call.method.answer(success=value))

    def raised(self, call: Call, error: Exception) -> bytes | None:
        """Encode a declared exception or a `TApplicationException` as a framed reply; None for any other."""
        if isinstance(error, TApplicationException):
            return self._framed(call.header, TMessageType.EXCEPTION, error)
        field = call.method.field_of(error)
        if field is None:
            return None
        return self._framed(call.header, TMessageType.REPLY, call.method.answer(**{field: error}))

    def refused(self, header: Header, kind: int, sentence: str) -> bytes:
        """Encode a `TApplicationException` as a framed reply."""
        return self._framed(header, TMessageType.EXCEPTION, TApplicationException(kind, sentence))

    def _read_arguments(self, header: Header, method: Method, body: bytes) -> Struct:
        buffer = TMemoryBuffer(body, header.length)
        arguments = method.arguments()
        try:
            arguments.read(header.protocol(buffer, fallback=False, **self._limits))
        except _UNREADABLE as error:
            raise MalformedMessage(f"unreadable arguments of {method.name} ({_describe(error)})") from error
        left = len(body) - buffer.cstringio_buf.tell()
        if left:
            raise MalformedMessage(f"{left} bytes behind the call of {method.name}")
        return arguments

    def _framed(self, header: Header, kind: int, struct_: Struct) -> bytes:
        buffer = TMemoryBuffer()
        protocol = header.protocol(buffer, fallback=False)
        protocol.writeMessageBegin(header.name, kind, header.sequence)
        try:
            struct_.write(protocol)
        except (TypeError, OverflowError, AttributeError, struct.error) as error:
            raise HandlerFault(f"{header.name} answered with a value of a wrong type ({_describe(error)})") from error
        protocol.writeMessageEnd()
        body: bytes = buffer.getvalue()
        if len(body) > self._frame_bytes:
            raise HandlerFault(f"the reply to {header.name} has {len(body)} bytes, more than a frame may have")
        return encode_frame(body)


def check_required_fields(value: object) -> None:
    """Check the required fields of a struct and of all structs in it: the accelerated codec does not.

    Raises `TProtocolException` with a message that names the field.
    """
    if isinstance(value, list):
        # Lists are homogeneous: one of names needs no visit to each.
        for item in value if value and hasattr(value[0], "thrift_spec") else ():
            check_required_fields(item)
    elif hasattr(value, "thrift_spec") and hasattr(value, "validate"):
        value.validate()
        kind: type = type(value)
        for name in _names_of_structs(kind):
            if (found := getattr(value, name)) is not None:
                check_required_fields(found)


def find_undecodable(value: object, name: str = "") -> str | None:
    """Return the name of a field that has bytes which are not UTF-8, or None.

    Thrift decodes each of them as U+FFFD, so that texts which differ become equal: two keys would be one request. That
    character is therefore not accepted at all.
    """
    if isinstance(value, str):
        return name if _REPLACEMENT in value else None
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            return name if _REPLACEMENT in "".join(value) else None
        return next(filter(None, (find_undecodable(item, name) for item in value)), None)
    if hasattr(value, "thrift_spec"):
        kind: type = type(value)
        fields = _names_of_texts(kind)
        return next(filter(None, (find_undecodable(getattr(value, field), field) for field in fields)), None)
    return None


@cache
def _names_of_texts(struct_: type) -> tuple[str, ...]:
    """The fields of a struct that are texts, or may contain some. `binary` is decoded as bytes, and is none."""
    spec: Spec = vars(struct_)["thrift_spec"]
    return tuple(field[2] for field in spec if field and field[1] in (TType.STRING, TType.STRUCT, TType.LIST))


@cache
def _names_of_structs(struct_: type) -> tuple[str, ...]:
    """The fields of a struct that are structs, or lists of anything: of many there is nothing to look into."""
    spec: Spec = vars(struct_)["thrift_spec"]
    return tuple(field[2] for field in spec if field and field[1] in (TType.STRUCT, TType.LIST))


def _methods_of(module: ModuleType) -> dict[str, Method]:
    methods: dict[str, Method] = {}
    for interface in reversed(module.Iface.__mro__[:-1]):
        declaring = sys.modules[interface.__module__]
        for name in vars(interface):
            if not name.startswith("_"):
                methods[name] = _method(declaring, name)
    return methods


def _method(module: ModuleType, name: str) -> Method:
    result = getattr(module, f"{name}_result", None)
    fields = [field for field in result.thrift_spec if field] if result else []
    errors = {field[2]: field[3][0] for field in fields if field[0] != 0}
    return Method(name, getattr(module, f"{name}_args"), result, errors, any(field[0] == 0 for field in fields))


def _field_names(spec: Spec) -> list[str]:
    return [field[2] for field in spec if field]


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
