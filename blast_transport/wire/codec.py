"""Encoding of the control messages, without sockets.

A frame is {body length u32, type u16, version u16} and the body, little-endian: JSON for messages that occur once a
session, a fixed structure for frequent ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.blocks.digests import DIGEST_BYTES, WHOLE_BYTES, Buffer
from blast_transport.blocks.layout import LARGEST_SEGMENT, MAX_BLOCKS, MAX_SEGMENTS
from blast_transport.wire.fields import from_json, to_json
from blast_transport.wire.messages import (
    Abort,
    Credit,
    Demoted,
    Digests,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Phase,
    PhaseReady,
    Readmitted,
    Ready,
    Repair,
    TransportOrder,
    TransportReport,
)

VERSION = 9
"""Of all messages; a receiver rejects another one."""
DIGESTS_PER_MESSAGE = 1024
"""16 KiB, so that a message delays no other one for long."""
RANGES_PER_NACK = 1024
"""A receiver that lacks more requests the rest later."""
WORD_BYTES = 1 << 14
"""Limit of a report or an order of a transport, whose content only that transport knows."""
PIECES_PER_REPAIR = 2 * MAX_SEGMENTS
REPAIR_BYTES = MAX_SEGMENTS * LARGEST_SEGMENT
_JSON_BYTES = 1 << 20
"""Memory that an unauthenticated client can cause."""
_MAX_SEGMENTS_ALL = MAX_BLOCKS * MAX_SEGMENTS

FRAME = struct.Struct("<IHH")
_SESSION = struct.Struct("<I")
_NUMBER = struct.Struct("<IQ")
_CREDIT = struct.Struct("<IQQQ")
_RANGE = struct.Struct("<QQ")
_REPAIR = struct.Struct("<IH")
_PIECE = struct.Struct("<QI")
_WORD = struct.Struct("<II")
_END = struct.Struct(f"<IQ{WHOLE_BYTES}s")


M_co = TypeVar("M_co", covariant=True)
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class MessageForm(Generic[M_co]):
    """Type of message: how to encode its body, how to decode it, and the maximum length of the body.

    `encode` accepts messages of this type only.
    """

    message: type[M_co]
    encode: Callable[..., bytes]
    decode: Callable[[bytes], M_co]
    largest: int


def _json(kind: type[M]) -> MessageForm[M]:
    return MessageForm(kind, to_json, partial(_checked, kind), _JSON_BYTES)


def _checked(kind: type[M], body: bytes) -> M:
    message = from_json(kind, body)
    if not 0 <= message.session < 1 << 32:
        raise RemoteProtocolError(f"{kind.__name__} has a session out of range")
    if isinstance(message, Hello | Phase | Ready):
        message.check()
    return message


def _encode_digests(digests: Digests) -> bytes:
    return _NUMBER.pack(digests.session, digests.first) + digests.digests


def _decode_digests(body: bytes) -> Digests:
    session, first = _NUMBER.unpack_from(body)
    digests = body[_NUMBER.size :]
    if not digests or len(digests) % DIGEST_BYTES or first + len(digests) // DIGEST_BYTES > MAX_BLOCKS:
        raise RemoteProtocolError("Digests is empty, holds a partial digest, or exceeds the maximum number of blocks")
    return Digests(session, first, digests)


def _encode_credit(credit: Credit) -> bytes:
    return _CREDIT.pack(credit.session, credit.handled, credit.position, credit.written)


def _decode_credit(body: bytes) -> Credit:
    return Credit(*_CREDIT.unpack(body))


def _encode_nack(nack: Nack) -> bytes:
    return _SESSION.pack(nack.session) + b"".join(_RANGE.pack(*asked) for asked in nack.ranges)


def _decode_nack(body: bytes) -> Nack:
    (session,) = _SESSION.unpack_from(body)
    ranges = tuple(_RANGE.iter_unpack(body[_SESSION.size :]))
    if not ranges or any(count == 0 or first + count > _MAX_SEGMENTS_ALL for first, count in ranges):
        raise RemoteProtocolError("Nack requests no segments, or segments out of range")
    return Nack(session, ranges)


def _encode_repair(repair: Repair) -> bytes:
    table = (_PIECE.pack(segment, len(data)) for segment, data in repair.pieces)
    head = _REPAIR.pack(repair.session, len(repair.pieces))
    return b"".join((head, *table, *(data for _, data in repair.pieces)))


def _decode_repair(body: bytes) -> Repair:
    session, number = _REPAIR.unpack_from(body)
    begin = _REPAIR.size + number * _PIECE.size
    pieces, data = list[tuple[int, Buffer]](), memoryview(body)
    for segment, length in _PIECE.iter_unpack(data[_REPAIR.size : begin]):
        pieces.append((segment, data[begin : begin + length]))
        begin += length
        if length == 0:
            raise RemoteProtocolError("Repair has an empty piece")
    if number == 0 or begin != len(body):
        raise RemoteProtocolError("Repair has a length that differs from the sum of its pieces")
    return Repair(session, tuple(pieces))


def _encode_end(end: EndOfData) -> bytes:
    return _END.pack(end.session, end.size, end.digest)


def _decode_end(body: bytes) -> EndOfData:
    return EndOfData(*_END.unpack(body))


def _encode_heartbeat(heartbeat: Heartbeat) -> bytes:
    return _NUMBER.pack(heartbeat.session, heartbeat.sent)


def _decode_heartbeat(body: bytes) -> Heartbeat:
    return Heartbeat(*_NUMBER.unpack(body))


def _encode_word(word: TransportReport | TransportOrder) -> bytes:
    return _WORD.pack(word.session, word.phase) + word.body


def _decode_word(kind: Callable[[int, int, bytes], M], body: bytes) -> M:
    session, phase = _WORD.unpack_from(body)
    return kind(session, phase, body[_WORD.size :])


_NACK_BYTES = _SESSION.size + RANGES_PER_NACK * _RANGE.size
_DIGEST_MESSAGE_BYTES = _NUMBER.size + DIGESTS_PER_MESSAGE * DIGEST_BYTES

_FORMS: dict[int, MessageForm[Message]] = {
    1: _json(Hello),
    2: _json(Ready),
    3: _json(Phase),
    4: _json(PhaseReady),
    5: MessageForm(Digests, _encode_digests, _decode_digests, _DIGEST_MESSAGE_BYTES),
    6: MessageForm(Credit, _encode_credit, _decode_credit, _CREDIT.size),
    7: MessageForm(Nack, _encode_nack, _decode_nack, _NACK_BYTES),
    8: MessageForm(
        Repair, _encode_repair, _decode_repair, _REPAIR.size + PIECES_PER_REPAIR * _PIECE.size + REPAIR_BYTES
    ),
    9: MessageForm(EndOfData, _encode_end, _decode_end, _END.size),
    10: _json(Fin),
    11: MessageForm(Heartbeat, _encode_heartbeat, _decode_heartbeat, _NUMBER.size),
    12: _json(Abort),
    13: _json(Readmitted),
    14: _json(Demoted),
    15: MessageForm(TransportReport, _encode_word, partial(_decode_word, TransportReport), _WORD.size + WORD_BYTES),
    16: MessageForm(TransportOrder, _encode_word, partial(_decode_word, TransportOrder), _WORD.size + WORD_BYTES),
}
_TYPES: dict[type[Message], int] = {form.message: number for number, form in _FORMS.items()}
LARGEST_BODY = max(form.largest for form in _FORMS.values())


def type_of(kind: type[Message]) -> int:
    """Return the type number of these messages."""
    return _TYPES[kind]


def encode(message: Message) -> bytes:
    """Encode the message as one frame. Raise LocalProtocolError if a field does not fit."""
    number = _TYPES[type(message)]
    return frame(number, _FORMS[number], message)


def frame(number: int, form: MessageForm[object], message: object) -> bytes:
    """Encode the message as one frame of this type and form. Raise LocalProtocolError if a field does not fit."""
    try:
        body = form.encode(message)
    except (struct.error, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"{type(message).__name__} cannot be sent: {error}") from error
    if len(body) > form.largest:
        raise LocalProtocolError(f"{type(message).__name__} of {len(body)} bytes exceeds the maximum of {form.largest}")
    return FRAME.pack(len(body), number, VERSION) + body


class FrameDecoder(Generic[M_co]):
    """Decoder of frames of these forms, by type number, from a byte stream that is split anywhere."""

    def __init__(self, forms: Mapping[int, MessageForm[M_co]]) -> None:
        self._forms = forms
        self._buffer = bytearray()

    @property
    def halfway(self) -> bool:
        """Return whether a frame has begun and is not complete."""
        return bool(self._buffer)

    def feed(self, data: bytes | memoryview) -> list[M_co]:
        """Consume the next bytes and return the messages that are now complete.

        Raise RemoteProtocolError as soon as a frame is invalid, before its body is buffered. The stream is unusable
        after that: close the connection.
        """
        self._buffer += data
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> M_co | None:
        if len(self._buffer) < FRAME.size:
            return None
        length, number, version = FRAME.unpack_from(self._buffer)
        form = self._forms.get(number)
        if version != VERSION:
            raise RemoteProtocolError(f"protocol version {version} instead of {VERSION}; update the older side")
        if form is None:
            raise RemoteProtocolError(f"unknown message type {number}")
        if length > form.largest:
            raise RemoteProtocolError(f"{form.message.__name__} of {length} bytes; the maximum is {form.largest}")
        end = FRAME.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[FRAME.size : end])
        del self._buffer[:end]
        try:
            message = form.decode(body)
        except struct.error as error:
            raise RemoteProtocolError(f"{form.message.__name__} cannot be read: {error}") from error
        return message


class ControlDecoder(FrameDecoder[Message]):
    """Decoder of the messages of a control connection."""

    def __init__(self) -> None:
        super().__init__(_FORMS)


def decode(one: bytes) -> Message:
    """Decode one whole frame. Raise RemoteProtocolError if it is invalid."""
    messages = ControlDecoder().feed(one)
    if len(messages) != 1:
        raise RemoteProtocolError("the bytes are not exactly one frame")
    return messages[0]
