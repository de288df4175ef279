"""The messages of a pipeline connection, and their binary frames. No sockets.

They are Kascade's (section III-C, figure 4). The node that connects says Join; the one that accepts speaks next. Down
the chain go Data, End, Quit, Report, Forget; up come Get, Passed; Pget asks the source. Ours besides: Alive, either
way, because the kernel of a frozen host still accepts connections and bytes, the reason in Quit, and Held, down the
chain, for what is not sent because everybody has it: holes, and what an earlier session left.

A frame is {body length u32, type u16, version u16} and the body, little-endian. Data's body goes beside the decoder,
so that the kernel may move it without showing it to us.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.store.store_pace import StorePace
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.joining import JOIN_TYPE, LARGEST_JOIN, TEXT_BYTES, Join, decode_join, encode_join
from blast_transport.wire.reasons import safe_reason

LARGEST_CHUNK = 16 << 20
MAX_NODES = 1 << 16

_OFFSET = struct.Struct("<Q")
_RANGE = struct.Struct("<QQ")
_MARKED = struct.Struct("<QB")
_ALIVE = struct.Struct("<QBBB")
_WHY = struct.Struct("<B")
_FAILED = struct.Struct("<HB")


class Why(IntEnum):
    """Why a node quits, or has to."""

    INTERRUPTED = 1
    """Down: the user ended the transfer."""
    GONE = 2
    """What is asked for is not held any more. Up: this node and all after it quit. Down: so do you."""
    EXCLUDED = 3
    """You are not in the chain any more."""
    LEFT = 4
    """Up: this node alone leaves; its successor is yours."""
    DONE = 5
    """Down: the report has reached the source; everybody may go."""


@dataclass(frozen=True, slots=True)
class Get:
    """Send from byte `offset` on."""

    offset: int


@dataclass(frozen=True, slots=True)
class Pget:
    """Send the bytes from `offset` to before `stop`."""

    offset: int
    stop: int


@dataclass(frozen=True, slots=True)
class Forget:
    """What you asked for is not held any more; the smallest offset that is: `lowest`."""

    lowest: int


@dataclass(frozen=True, slots=True)
class Data:
    """The next `length` bytes of the connection are data."""

    length: int


@dataclass(frozen=True, slots=True)
class Held:
    """Every receiver held the next bytes, to before `stop`, when the transfer began; the data goes on there."""

    stop: int


@dataclass(frozen=True, slots=True)
class End:
    """The phase ends at byte `stop`; `final`: so does the file or stream."""

    stop: int
    final: bool


@dataclass(frozen=True, slots=True)
class Quit:
    """End before the end."""

    why: Why
    text: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """After End or Quit: the nodes lost so far, by place in the chain, with the reason."""

    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passed:
    """The report has been delivered. It comes back with all that was lost, so that the source need not be called."""

    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alive:
    """Sign of life of a node that holds all before `position`.

    `held_up`: what it waits for is not its own doing. `starved`: it waits for data most of the time. `store`: how its
    store does.
    """

    position: int
    held_up: bool
    starved: bool = False
    store: StorePace = StorePace.KEEPS_UP


Message = Join | Get | Pget | Forget | Data | Held | End | Quit | Report | Passed | Alive


def short(text: str) -> str:
    """The text, cut to what a message can carry."""
    return text.encode(errors="replace")[:TEXT_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class _Form:
    message: type[Message]
    encode: Callable[..., bytes]
    decode: Callable[[bytes], Message]
    largest: int


def _decode_pget(body: bytes) -> Pget:
    offset, stop = _RANGE.unpack(body)
    if offset >= stop:
        raise RemoteProtocolError(f"PGET asks for nothing: from {offset} to {stop}")
    return Pget(offset, stop)


def _flag(value: int) -> bool:
    if value > 1:
        raise RemoteProtocolError(f"a flag of {value}")
    return value == 1


def _decode_end(body: bytes) -> End:
    stop, final = _MARKED.unpack(body)
    return End(stop, _flag(final))


def _decode_alive(body: bytes) -> Alive:
    position, held_up, starved, store = _ALIVE.unpack(body)
    try:
        pace = StorePace(store)
    except ValueError:
        raise RemoteProtocolError(f"ALIVE tells pace {store} of a store") from None
    return Alive(position, _flag(held_up), _flag(starved), pace)


def _decode_quit(body: bytes) -> Quit:
    (why,) = _WHY.unpack_from(body)
    try:
        return Quit(Why(why), safe_reason(body[_WHY.size :].decode()))
    except ValueError:
        raise RemoteProtocolError(f"QUIT cannot be read (reason {why})") from None


def encode_failed(failed: Mapping[int, str]) -> bytes:
    """Lost nodes by place, with the reasons: the body of REPORT and PASSED, and a node's word to the sender."""
    parts = []
    for place, reason in failed.items():
        text = short(reason).encode()
        parts.append(_FAILED.pack(place, len(text)) + text)
    return b"".join(parts)


def decode_failed(body: bytes) -> dict[int, str]:
    """What `encode_failed` was given. Raises RemoteProtocolError."""
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

_FORMS: dict[int, _Form] = {
    JOIN_TYPE: _Form(Join, encode_join, decode_join, LARGEST_JOIN),
    33: _Form(Get, lambda get: _OFFSET.pack(get.offset), lambda body: Get(*_OFFSET.unpack(body)), _OFFSET.size),
    34: _Form(Pget, lambda pget: _RANGE.pack(pget.offset, pget.stop), _decode_pget, _RANGE.size),
    35: _Form(Forget, lambda it: _OFFSET.pack(it.lowest), lambda body: Forget(*_OFFSET.unpack(body)), _OFFSET.size),
    36: _Form(Data, lambda data: b"", lambda body: Data(0), LARGEST_CHUNK),
    37: _Form(End, lambda end: _MARKED.pack(end.stop, end.final), _decode_end, _MARKED.size),
    38: _Form(Quit, lambda it: _WHY.pack(it.why) + short(it.text).encode(), _decode_quit, _WHY.size + TEXT_BYTES),
    39: _Form(Report, lambda it: encode_failed(it.failed), lambda body: Report(decode_failed(body)), _REPORT_BYTES),
    40: _Form(Passed, lambda it: encode_failed(it.failed), lambda body: Passed(decode_failed(body)), _REPORT_BYTES),
    41: _Form(Alive, lambda it: _ALIVE.pack(it.position, it.held_up, it.starved, it.store), _decode_alive, _ALIVE.size),
    42: _Form(Held, lambda held: _OFFSET.pack(held.stop), lambda body: Held(*_OFFSET.unpack(body)), _OFFSET.size),
}
_TYPES: dict[type[Message], int] = {form.message: number for number, form in _FORMS.items()}


def encode(message: Message) -> bytes:
    """The message as one frame; of Data the frame without its body. Raises LocalProtocolError if a field is too big."""
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


class Decoder:
    """Messages out of a stream whose data goes by beside it.

    `wanted` is how many bytes it can take next, 0 while `payload` bytes of data are still to go by. Feeding it no more
    than that leaves every byte of data in the socket.
    """

    def __init__(self) -> None:
        self.wanted = FRAME.size
        self.payload = 0
        self._buffer = bytearray()
        self._number = 0

    def feed(self, data: bytes) -> Message | None:
        """Take up to `wanted` bytes; the message that they complete, if one is.

        Raises RemoteProtocolError for what no node may say, before its body is taken: close the connection then.
        Raises LocalProtocolError for more bytes than wanted.
        """
        if len(data) > self.wanted:
            raise LocalProtocolError(f"{len(data)} bytes fed where {self.wanted} were wanted")
        self._buffer += data
        self.wanted -= len(data)
        if self.wanted > 0 or self.payload > 0:
            return None
        if self._number == 0 and not self._begin():
            return Data(self.payload)
        return self._finish() if self.wanted == 0 else None

    def passed(self, count: int) -> None:
        """So many bytes of data went by."""
        if not 0 <= count <= self.payload:
            raise LocalProtocolError(f"{count} bytes of data went by where {self.payload} were left")
        self.payload -= count
        if self.payload == 0:
            self.wanted = FRAME.size

    def followed(self, payload: int) -> None:
        """Data went by, and perhaps more frames of it; of the last one so many bytes are left."""
        if self.payload == 0:
            raise LocalProtocolError("frames went by where a message had begun")
        self.payload = payload
        if payload == 0:
            self.wanted = FRAME.size

    def _begin(self) -> bool:
        """Read a frame's head; False if its body is data."""
        length, number, version = FRAME.unpack(self._buffer)
        form = _FORMS.get(number)
        if version != VERSION or form is None:
            raise RemoteProtocolError(f"unknown pipeline message type {number}, version {version}")
        if length > form.largest:
            raise RemoteProtocolError(f"{form.message.__name__} of {length} bytes; the most is {form.largest}")
        self._buffer.clear()
        if form.message is Data:
            if length == 0:
                raise RemoteProtocolError("DATA without data")
            self.payload = length
            return False
        self._number, self.wanted = number, length
        return True

    def _finish(self) -> Message:
        form, body = _FORMS[self._number], bytes(self._buffer)
        self._buffer.clear()
        self._number, self.wanted = 0, FRAME.size
        try:
            message = form.decode(body)
        except (struct.error, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f"{form.message.__name__} cannot be read: {error}") from error
        return message
