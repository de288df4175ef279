"""Messages of a pipeline connection, and their binary frames. No sockets.

They are those of Kascade (section III-C, figure 4). The connecting node sends Join; the accepting node sends the next
message. Data, End, Quit, Report and Forget go down the chain, Get and Passed up; Pget goes to the source. Blast adds
three: Heartbeat in both directions, because the kernel of a frozen host still accepts connections and bytes; the reason
in Quit; and Held, down the chain, for ranges that every receiver has already: holes, and blocks of an earlier session.

A frame is {body length u32, type u16, version u16} and the body, little-endian. The body of Data bypasses the decoder,
so that the kernel may move it without a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.joining import JOIN_TYPE, LARGEST_JOIN, TEXT_BYTES, Join, decode_join, encode_join
from blast_transport.wire.reasons import safe_reason

LARGEST_CHUNK = 16 << 20
"""Announced bytes of data, which a node checks before it reads them."""
MAX_NODES = 1 << 16
"""Bounds the memory of a report, which may name every node."""

_OFFSET = struct.Struct("<Q")
_RANGE = struct.Struct("<QQ")
_MARKED = struct.Struct("<QB")
_HEARTBEAT = struct.Struct("<QBBB")
_REASON = struct.Struct("<B")
_FAILED = struct.Struct("<HB")


class QuitReason(IntEnum):
    """Reason why a node quits."""

    INTERRUPTED = 1
    """Down: the user ended the transfer."""
    LOST = 2
    """Up: the requested bytes are lost, so that this node and all after it quit. Down: the successor has to quit."""
    EXCLUDED = 3
    """The node is excluded from the chain."""
    LEFT = 4
    """Up: only this node leaves; its successor becomes that of the predecessor."""
    DONE = 5
    """Down: the report has reached the source; all nodes may end."""


class Get(FrozenRecord):
    """Request for the bytes from `offset` on."""

    offset: int


class Pget(FrozenRecord):
    """Request to the source for the bytes from `offset` to before `stop`."""

    offset: int
    stop: int


class Forget(FrozenRecord):
    """Answer to a request for bytes that are no longer held; `first_held` is the smallest offset that is."""

    first_held: int


class Data(FrozenRecord):
    """Frame head: the next `length` bytes of the connection are data."""

    length: int


class Held(FrozenRecord):
    """Range that every receiver held when the transfer began; the data continues at `stop`."""

    stop: int


class End(FrozenRecord):
    """End of the phase at byte `stop`; `final`: also of the file or stream."""

    stop: int
    final: bool


class Quit(FrozenRecord):
    """End before all data has passed."""

    reason: QuitReason
    text: str = ""


class Report(FrozenRecord):
    """After End or Quit: the lost nodes, by position in the chain, with the reason."""

    failed: dict[int, str]


class Passed(FrozenRecord):
    """Confirmation that the report is delivered, with all losses, so that the source need not be called."""

    failed: dict[int, str]


class PipelineHeartbeat(FrozenRecord):
    """Heartbeat of a node that holds all bytes before `position`.

    `held_up`: it waits for another node. `starved`: it waits for data most of the time. `store`: pace of its store.
    """

    position: int
    held_up: bool
    starved: bool = False
    store: StorePace = StorePace.KEEPS_UP


Message = Join | Get | Pget | Forget | Data | Held | End | Quit | Report | Passed | PipelineHeartbeat


def short(text: str) -> str:
    """Cut the text to the length that a message can carry."""
    return text.encode(errors="replace")[:TEXT_BYTES].decode(errors="ignore")


class _PipelineForm(NamedTuple):
    message: type[Message]
    encode: Callable[..., bytes]
    decode: Callable[[bytes], Message]
    largest: int


def _decode_pget(body: bytes) -> Pget:
    offset, stop = _RANGE.unpack(body)
    if offset >= stop:
        raise RemoteProtocolError(f"PGET requests an empty range: from {offset} to {stop}")
    return Pget(offset, stop)


def _flag(value: int) -> bool:
    if value > 1:
        raise RemoteProtocolError(f"a flag is {value} instead of 0 or 1")
    return value == 1


def _decode_end(body: bytes) -> End:
    stop, final = _MARKED.unpack(body)
    return End(stop, _flag(final))


def _decode_heartbeat(body: bytes) -> PipelineHeartbeat:
    position, held_up, starved, store = _HEARTBEAT.unpack(body)
    try:
        pace = StorePace(store)
    except ValueError:
        raise RemoteProtocolError(f"HEARTBEAT has an unknown store pace {store}") from None
    return PipelineHeartbeat(position, _flag(held_up), _flag(starved), pace)


def _decode_quit(body: bytes) -> Quit:
    (reason,) = _REASON.unpack_from(body)
    try:
        return Quit(QuitReason(reason), safe_reason(body[_REASON.size :].decode()))
    except ValueError:
        raise RemoteProtocolError(f"QUIT cannot be read (reason {reason})") from None


def encode_failed(failed: Mapping[int, str]) -> bytes:
    """Encode lost nodes by position, with the reasons.

    This is the body of REPORT and PASSED, and of a node's report to the sender.
    """
    parts = []
    for place, reason in failed.items():
        text = short(reason).encode()
        parts.append(_FAILED.pack(place, len(text)) + text)
    return b"".join(parts)


def decode_failed(body: bytes) -> dict[int, str]:
    """Decode the result of `encode_failed`. Raise RemoteProtocolError if it is invalid."""
    failed, position = {}, 0
    try:
        while position < len(body):
            place, length = _FAILED.unpack_from(body, position)
            position += _FAILED.size
            text = body[position : position + length]
            if len(text) < length or place in failed:
                raise RemoteProtocolError("REPORT is cut short, or names a node twice")
            failed[place] = safe_reason(text.decode())
            position += length
    except (struct.error, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"REPORT cannot be read: {error}") from None
    return failed


_REPORT_BYTES = MAX_NODES * (_FAILED.size + TEXT_BYTES)

_FORMS: dict[int, _PipelineForm] = {
    JOIN_TYPE: _PipelineForm(Join, encode_join, decode_join, LARGEST_JOIN),
    33: _PipelineForm(Get, lambda get: _OFFSET.pack(get.offset), lambda body: Get(*_OFFSET.unpack(body)), _OFFSET.size),
    34: _PipelineForm(Pget, lambda pget: _RANGE.pack(pget.offset, pget.stop), _decode_pget, _RANGE.size),
    35: _PipelineForm(
        Forget, lambda it: _OFFSET.pack(it.first_held), lambda body: Forget(*_OFFSET.unpack(body)), _OFFSET.size
    ),
    36: _PipelineForm(Data, lambda data: b"", lambda body: Data(0), LARGEST_CHUNK),
    37: _PipelineForm(End, lambda end: _MARKED.pack(end.stop, end.final), _decode_end, _MARKED.size),
    38: _PipelineForm(
        Quit, lambda it: _REASON.pack(it.reason) + short(it.text).encode(), _decode_quit, _REASON.size + TEXT_BYTES
    ),
    39: _PipelineForm(
        Report, lambda it: encode_failed(it.failed), lambda body: Report(decode_failed(body)), _REPORT_BYTES
    ),
    40: _PipelineForm(
        Passed, lambda it: encode_failed(it.failed), lambda body: Passed(decode_failed(body)), _REPORT_BYTES
    ),
    41: _PipelineForm(
        PipelineHeartbeat,
        lambda it: _HEARTBEAT.pack(it.position, it.held_up, it.starved, it.store),
        _decode_heartbeat,
        _HEARTBEAT.size,
    ),
    42: _PipelineForm(
        Held, lambda held: _OFFSET.pack(held.stop), lambda body: Held(*_OFFSET.unpack(body)), _OFFSET.size
    ),
}
_TYPES: dict[type[Message], int] = {form.message: number for number, form in _FORMS.items()}


def encode(message: Message) -> bytes:
    """Encode the message as one frame; of Data only the head. Raise LocalProtocolError if a field is too large."""
    number = _TYPES[type(message)]
    form = _FORMS[number]
    try:
        body = form.encode(message)
        length = message.length if isinstance(message, Data) else len(body)
        if not 0 <= length <= form.largest or (isinstance(message, Data) and length == 0):
            raise LocalProtocolError(f"{form.message.__name__} of {length} bytes cannot be sent")
        return FRAME.pack(length, number, VERSION) + body
    except (struct.error, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"{form.message.__name__} cannot be sent: {error}") from error


class PipelineDecoder:
    """Decoder of messages from a stream whose data bypasses it.

    `needed` is the number of bytes that it accepts next, 0 while `payload` bytes of data have yet to pass. Feeding it
    no more than that leaves every byte of data in the socket.
    """

    def __init__(self) -> None:
        self.needed = FRAME.size
        self.payload = 0
        self._buffer = bytearray()
        self._number = 0

    def feed(self, data: bytes) -> Message | None:
        """Consume up to `needed` bytes; return the message that they complete, if any.

        Raise RemoteProtocolError for an invalid message, before its body is received: close the connection then. Raise
        LocalProtocolError for more bytes than wanted.
        """
        if len(data) > self.needed:
            raise LocalProtocolError(f"{len(data)} bytes fed, more than the {self.needed} expected")
        self._buffer += data
        self.needed -= len(data)
        if self.needed > 0 or self.payload > 0:
            return None
        if self._number == 0 and not self._begin():
            return Data(self.payload)
        return self._finish() if self.needed == 0 else None

    def passed(self, count: int) -> None:
        """Record that `count` bytes of data have passed."""
        if not 0 <= count <= self.payload:
            raise LocalProtocolError(f"{count} bytes of data passed, more than the {self.payload} that remain")
        self.payload -= count
        if self.payload == 0:
            self.needed = FRAME.size

    def followed(self, payload: int) -> None:
        """Record that data, and possibly further data frames, have passed; `payload` bytes of the last one remain."""
        if self.payload == 0:
            raise LocalProtocolError("data frames passed in the middle of another message")
        self.payload = payload
        if payload == 0:
            self.needed = FRAME.size

    def _begin(self) -> bool:
        """Read a frame's head; return False if its body is data."""
        length, number, version = FRAME.unpack(self._buffer)
        form = _FORMS.get(number)
        if version != VERSION or form is None:
            raise RemoteProtocolError(f"unknown pipeline message type {number}, version {version}")
        if length > form.largest:
            raise RemoteProtocolError(f"{form.message.__name__} of {length} bytes; the maximum is {form.largest}")
        self._buffer.clear()
        if form.message is Data:
            if length == 0:
                raise RemoteProtocolError("DATA without data")
            self.payload = length
            return False
        self._number, self.needed = number, length
        return True

    def _finish(self) -> Message:
        form, body = _FORMS[self._number], bytes(self._buffer)
        self._buffer.clear()
        self._number, self.needed = 0, FRAME.size
        try:
            message = form.decode(body)
        except (struct.error, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f"{form.message.__name__} cannot be read: {error}") from error
        return message
