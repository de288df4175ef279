"""The messages of an edge of a tree, and their binary frames. No sockets.

The parent connects and says Join, then Open. The child answers with what it holds, once for all streams of the edge.
Down come Block and Named, and End, Alive, Quit; up come Taken, Alive, Quit. Streams but the first carry blocks only.

A frame is {body length u32, type u16, version u16} and the body, little-endian. The bytes of a block are read to where
they stay: `Reader` says where that is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.layout import MAX_BLOCKS
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.reasons import safe_reason

MAX_STREAMS = 8
MAX_RANGES = 1 << 12
"""What a child holds beyond these ranges is sent once more."""
TEXT_BYTES = 255

_OPEN = struct.Struct("<HB")
_NUMBER = struct.Struct("<Q")
_TAKEN = struct.Struct("<QB")
_RANGE = struct.Struct("<QQ")
_BLOCK = struct.Struct("<IHHQ")
_BLOCK_TYPE = 50


@dataclass(frozen=True, slots=True)
class Open:
    """This connection is stream `stream` of the edge to you in tree `tree`, by its place in the phase."""

    tree: int
    stream: int


@dataclass(frozen=True, slots=True)
class Holds:
    """The child holds these ranges of blocks, of those that the phase brings: their numbers are enough."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of this tree, with its bytes."""

    number: int
    data: bytearray


@dataclass(frozen=True, slots=True)
class Named:
    """A block of this tree, which the child holds."""

    number: int


@dataclass(frozen=True, slots=True)
class End:
    """The tree ends: so many blocks were sent or named on this edge."""

    entries: int


@dataclass(frozen=True, slots=True)
class Taken:
    """So many of the blocks that were sent or named here are at the child and at all behind it.

    `full`: it does not read at the moment, by its own doing.
    """

    entries: int
    full: bool


@dataclass(frozen=True, slots=True)
class Alive:
    """A sign of life."""


@dataclass(frozen=True, slots=True)
class Quit:
    """This end leaves the tree, and why."""

    reason: str


Message = Open | Holds | Block | Named | End | Taken | Alive | Quit


def _encode_holds(holds: Holds) -> bytes:
    return b"".join(_RANGE.pack(*each) for each in holds.ranges)


def _decode_holds(body: bytes) -> Holds:
    ranges = tuple(_RANGE.iter_unpack(body))
    if any(count == 0 or first + count > MAX_BLOCKS for first, count in ranges):
        raise RemoteProtocolError("Holds names no block, or one that cannot be")
    return Holds(ranges)


def _decode_open(body: bytes) -> Open:
    tree, stream = _OPEN.unpack(body)
    if stream >= MAX_STREAMS:
        raise RemoteProtocolError(f"Open of stream {stream}; the most are {MAX_STREAMS}")
    return Open(tree, stream)


def _decode_named(body: bytes) -> Named:
    return Named(_numbered(body))


def _numbered(body: bytes) -> int:
    (number,) = _NUMBER.unpack(body)
    if number >= MAX_BLOCKS:
        raise RemoteProtocolError(f"block {number} cannot be")
    return int(number)


def _decode_end(body: bytes) -> End:
    return End(*_NUMBER.unpack(body))


def _decode_taken(body: bytes) -> Taken:
    entries, full = _TAKEN.unpack(body)
    if full > 1:
        raise RemoteProtocolError(f"a flag of {full}")
    return Taken(entries, full == 1)


def _encode_quit(quit_: Quit) -> bytes:
    return quit_.reason.encode(errors="replace")[:TEXT_BYTES].decode(errors="ignore").encode()


@dataclass(frozen=True, slots=True)
class _Form:
    message: type[Message]
    encode: Callable[..., bytes]
    decode: Callable[[bytes], Message]
    largest: int


_FORMS: dict[int, _Form] = {
    48: _Form(Open, lambda it: _OPEN.pack(it.tree, it.stream), _decode_open, _OPEN.size),
    49: _Form(Holds, _encode_holds, _decode_holds, MAX_RANGES * _RANGE.size),
    51: _Form(Named, lambda it: _NUMBER.pack(it.number), _decode_named, _NUMBER.size),
    52: _Form(End, lambda it: _NUMBER.pack(it.entries), _decode_end, _NUMBER.size),
    53: _Form(Taken, lambda it: _TAKEN.pack(it.entries, it.full), _decode_taken, _TAKEN.size),
    54: _Form(Alive, lambda it: b"", lambda body: Alive(), 0),
    55: _Form(Quit, _encode_quit, lambda body: Quit(safe_reason(body.decode())), TEXT_BYTES),
}
_TYPES: dict[type[Message], int] = {form.message: number for number, form in _FORMS.items()}


def encode(message: Message) -> bytes:
    """The message as one frame. Raises LocalProtocolError if a field is too big."""
    if isinstance(message, Block):
        return block_head(message.number, len(message.data)) + message.data
    number = _TYPES[type(message)]
    form = _FORMS[number]
    try:
        body = form.encode(message)
    except struct.error as error:
        raise LocalProtocolError(f"{form.message.__name__} cannot be sent: {error}") from error
    if len(body) > form.largest:
        raise LocalProtocolError(f"{form.message.__name__} of {len(body)} bytes cannot be sent")
    return FRAME.pack(len(body), number, VERSION) + body


def block_head(number: int, length: int) -> bytes:
    """What goes before the bytes of a block."""
    return _BLOCK.pack(_NUMBER.size + length, _BLOCK_TYPE, VERSION, number)


class Reader:
    """Messages out of a byte stream, of which the bytes of blocks are not copied.

    `check` is given the number and the length of a block, and raises RemoteProtocolError where no such one may come.
    """

    def __init__(self, check: Callable[[int, int], None]) -> None:
        self._check = check
        self._ahead = memoryview(bytearray(_AHEAD_BYTES))
        self._read = bytearray()
        self._number = 0
        self._data: bytearray | None = None
        self._rest = memoryview(b"")

    def room(self) -> list[memoryview]:
        """Where the bytes that come next go, in this order."""
        return [self._rest, self._ahead] if self._data is not None else [self._ahead]

    def filled(self, count: int) -> list[Message]:
        """So many bytes have come: the messages that are now complete.

        Raises RemoteProtocolError for what no host may say, before its body is taken: close the connection then.
        """
        messages: list[Message] = []
        if self._data is not None:
            of_block = min(count, len(self._rest))
            self._rest, count = self._rest[of_block:], count - of_block
            if self._rest:
                return messages
            messages.append(self._finish_block())
        self._read += self._ahead[:count]
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _finish_block(self) -> Block:
        assert self._data is not None
        block, self._data = Block(self._number, self._data), None
        return block

    def _next(self) -> Message | None:
        if self._data is not None or len(self._read) < FRAME.size:
            return None
        length, number, version = FRAME.unpack_from(self._read)
        if version != VERSION:
            raise RemoteProtocolError(f"version {version} of the protocol, where {VERSION} is spoken; update the older")
        if number == _BLOCK_TYPE:
            return self._begin_block(length)
        form = _FORMS.get(number)
        if form is None or length > form.largest:
            raise RemoteProtocolError(f"message type {number} of {length} bytes, which there is not in a tree")
        end = FRAME.size + length
        if len(self._read) < end:
            return None
        body = bytes(self._read[FRAME.size : end])
        del self._read[:end]
        try:
            message = form.decode(body)
        except (struct.error, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f"{form.message.__name__} cannot be read: {error}") from error
        return message

    def _begin_block(self, length: int) -> Block | None:
        """Let the bytes of a block come; the block, if they are all here."""
        if len(self._read) < _BLOCK.size:
            return None
        *_, self._number = _BLOCK.unpack_from(self._read)
        size = length - _NUMBER.size
        self._check(self._number, size)
        self._data = bytearray(size)
        here = self._read[_BLOCK.size : _BLOCK.size + size]
        self._data[: len(here)] = here
        del self._read[: _BLOCK.size + len(here)]
        self._rest = memoryview(self._data)[len(here) :]
        return None if self._rest else self._finish_block()


_AHEAD_BYTES = 1 << 8
"""What is read behind a block: the head of the next one, mostly, and as little as possible of its bytes."""
