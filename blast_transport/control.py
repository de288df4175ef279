"""The control connection's messages and their framed codec. No sockets.

One TCP connection per receiver over the packet network. A frame is {body length u32, type u16, version u16} and the
body, little-endian. Every message carries the session it belongs to, so that a late one of an older session is
recognised. The sender invites with Hello and the receiver answers Ready; Tune leads the receiver to another group in
mid-session and is answered by Ready too; gaps are asked for by Nack and filled by Repair; Progress is either side's
sign of life; EndOfData says that all was sent once; Fin closes the session with the receiver's verdict. Whoever gives
up otherwise closes the connection.
"""

from __future__ import annotations

import ipaddress
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blast_transport.bitmap import Range
from blast_transport.errors import LocalProtocolError, RemoteProtocolError

VERSION = 1
DIGEST_BYTES = 32
LARGEST_SEGMENT = 1 << 20
LARGEST_SEGMENT_COUNT = 1 << 27
RANGES_PER_NACK = 1024
_TEXT_BYTES = 1024

_FRAME = struct.Struct("<IHH")
_HELLO = struct.Struct("<IQI4sH")
_SESSION = struct.Struct("<I")
_TUNE = struct.Struct("<I4sH")
_SEGMENT = struct.Struct("<IQ")
_RANGE = struct.Struct("<QQ")
_FIN = struct.Struct(f"<I{DIGEST_BYTES}sdQQ")


@dataclass(frozen=True, slots=True)
class Hello:
    """Invitation: a file of `size` bytes named `name` is coming in segments of `segment_size` bytes.

    It comes to the multicast `group` and `port`; an empty group means that all of it comes over this connection.
    """

    session: int
    name: str
    size: int
    segment_size: int
    group: str
    port: int

    @property
    def segments(self) -> int:
        """Number of segments in the file."""
        return -(-self.size // self.segment_size)

    def length(self, segment: int) -> int:
        """Bytes in this segment; the last one may be short."""
        return min(self.segment_size, self.size - segment * self.segment_size)


@dataclass(frozen=True, slots=True)
class Ready:
    """The receiver has room, listens to the group, and waits."""

    session: int


@dataclass(frozen=True, slots=True)
class Tune:
    """The data goes on at another multicast `group` and `port`; what is held stays held."""

    session: int
    group: str
    port: int


@dataclass(frozen=True, slots=True)
class Nack:
    """The receiver misses these segments."""

    session: int
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """One segment, over the packet network."""

    session: int
    segment: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """Sign of life. From the sender: `segment` is the next one to go by light. From a receiver: it holds new segments,
    all below `segment` among them.
    """

    session: int
    segment: int


@dataclass(frozen=True, slots=True)
class EndOfData:
    """Every segment was sent once; `digest` is BLAKE2b-256 of the whole file."""

    session: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Fin:
    """The receiver's verdict: the file is in place, or `reason` says why not (empty: it is).

    `first_datagram` is the receiver's time.monotonic() at its first datagram, None if it saw none.
    """

    session: int
    digest: bytes
    reason: str
    first_datagram: float | None
    repaired_bytes: int
    duplicates: int


Message = Hello | Ready | Tune | Nack | Repair | Progress | EndOfData | Fin


@dataclass(frozen=True, slots=True)
class _Codec:
    message: type[Message]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Message]
    largest: int


def _encode_hello(hello: Hello) -> bytes:
    group = ipaddress.IPv4Address(hello.group).packed if hello.group else bytes(4)
    return _HELLO.pack(hello.session, hello.size, hello.segment_size, group, hello.port) + hello.name.encode()


def _decode_hello(body: bytes) -> Hello:
    session, size, segment_size, packed, port = _HELLO.unpack_from(body)
    group = "" if packed == bytes(4) else _group(packed, port, "Hello")
    if not 0 < segment_size <= LARGEST_SEGMENT or size > LARGEST_SEGMENT_COUNT * segment_size:
        raise RemoteProtocolError(f"Hello announces {size} bytes in segments of {segment_size}, which is out of range")
    return Hello(session, body[_HELLO.size :].decode(), size, segment_size, group, port)


def _encode_tune(tune: Tune) -> bytes:
    return _TUNE.pack(tune.session, ipaddress.IPv4Address(tune.group).packed, tune.port)


def _decode_tune(body: bytes) -> Tune:
    session, packed, port = _TUNE.unpack(body)
    return Tune(session, _group(packed, port, "Tune"), port)


def _group(packed: bytes, port: int, message: str) -> str:
    group = ipaddress.IPv4Address(packed)
    if not (group.is_multicast and port):
        raise RemoteProtocolError(f"{message} names {group}:{port}, which is not a multicast group and port")
    return str(group)


def _decode_ready(body: bytes) -> Ready:
    return Ready(*_SESSION.unpack(body))


def _encode_nack(nack: Nack) -> bytes:
    return _SESSION.pack(nack.session) + b"".join(_RANGE.pack(*asked) for asked in nack.ranges)


def _decode_nack(body: bytes) -> Nack:
    (session,) = _SESSION.unpack_from(body)
    ranges = tuple(_RANGE.iter_unpack(body[_SESSION.size :]))
    if not ranges or any(count == 0 for _, count in ranges):
        raise RemoteProtocolError("Nack asks for nothing")
    return Nack(session, ranges)


def _encode_repair(repair: Repair) -> bytes:
    return _SEGMENT.pack(repair.session, repair.segment) + repair.data


def _decode_repair(body: bytes) -> Repair:
    session, segment = _SEGMENT.unpack_from(body)
    return Repair(session, segment, body[_SEGMENT.size :])


def _decode_progress(body: bytes) -> Progress:
    return Progress(*_SEGMENT.unpack(body))


def _encode_end(end: EndOfData) -> bytes:
    return _SESSION.pack(end.session) + end.digest


def _decode_end(body: bytes) -> EndOfData:
    (session,) = _SESSION.unpack_from(body)
    if len(body) != _SESSION.size + DIGEST_BYTES:
        raise RemoteProtocolError("EndOfData carries a digest of the wrong length")
    return EndOfData(session, body[_SESSION.size :])


def _encode_fin(fin: Fin) -> bytes:
    first = math.nan if fin.first_datagram is None else fin.first_datagram
    fixed = _FIN.pack(fin.session, fin.digest, first, fin.repaired_bytes, fin.duplicates)
    return fixed + fin.reason.encode(errors="replace")[:_TEXT_BYTES]


def _decode_fin(body: bytes) -> Fin:
    session, digest, first, repaired, duplicates = _FIN.unpack_from(body)
    reason = body[_FIN.size :].decode(errors="replace")
    return Fin(session, digest, reason, first if math.isfinite(first) else None, repaired, duplicates)


_CODECS: dict[int, _Codec] = {
    1: _Codec(Hello, _encode_hello, _decode_hello, _HELLO.size + _TEXT_BYTES),
    2: _Codec(Ready, lambda ready: _SESSION.pack(ready.session), _decode_ready, _SESSION.size),
    3: _Codec(Nack, _encode_nack, _decode_nack, _SESSION.size + RANGES_PER_NACK * _RANGE.size),
    4: _Codec(Repair, _encode_repair, _decode_repair, _SEGMENT.size + LARGEST_SEGMENT),
    5: _Codec(Progress, lambda alive: _SEGMENT.pack(alive.session, alive.segment), _decode_progress, _SEGMENT.size),
    6: _Codec(EndOfData, _encode_end, _decode_end, _SESSION.size + DIGEST_BYTES),
    7: _Codec(Fin, _encode_fin, _decode_fin, _FIN.size + _TEXT_BYTES),
    8: _Codec(Tune, _encode_tune, _decode_tune, _TUNE.size),
}
_TYPES: dict[type[Message], int] = {codec.message: number for number, codec in _CODECS.items()}


def encode(message: Message) -> bytes:
    """The message as one frame. Raises LocalProtocolError if a field does not fit."""
    number = _TYPES[type(message)]
    try:
        body = _CODECS[number].encode(message)
    except (struct.error, UnicodeEncodeError, ipaddress.AddressValueError) as error:
        raise LocalProtocolError(f"{type(message).__name__} cannot be sent: {error}") from error
    if len(body) > _CODECS[number].largest:
        raise LocalProtocolError(f"{type(message).__name__} of {len(body)} bytes is too long to be sent")
    return _FRAME.pack(len(body), number, VERSION) + body


def repair_header(session: int, segment: int, length: int) -> bytes:
    """The frame of a Repair without its `length` bytes of data, for a caller that sends those by sendfile."""
    return _FRAME.pack(_SEGMENT.size + length, _TYPES[Repair], VERSION) + _SEGMENT.pack(session, segment)


class Decoder:
    """Frames out of a byte stream, cut in any way."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Message]:
        """Take the next bytes; give the messages that are now complete.

        Raises RemoteProtocolError as soon as a frame cannot be right, before its body is buffered. The stream
        has no meaning after that: close the connection.
        """
        self._buffer += data
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> Message | None:
        if len(self._buffer) < _FRAME.size:
            return None
        length, number, version = _FRAME.unpack_from(self._buffer)
        codec = _CODECS.get(number)
        if version != VERSION or codec is None:
            raise RemoteProtocolError(f"unknown message type {number}, version {version}")
        if length > codec.largest:
            raise RemoteProtocolError(f"{codec.message.__name__} of {length} bytes; the most is {codec.largest}")
        end = _FRAME.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[_FRAME.size : end])
        del self._buffer[:end]
        try:
            return codec.decode(body)
        except (struct.error, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f"{codec.message.__name__} cannot be read: {error}") from error
