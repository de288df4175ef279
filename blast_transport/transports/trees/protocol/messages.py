"""Messages of an edge of a tree, and their binary frames. No sockets.

The parent connects and sends Join, then Open. The child answers with Have, once for all streams of the edge. The parent
sends TreeBlock and BlockHeld, then EdgeEnd; the child sends EdgeCredit; both send TreeHeartbeat and TreeAbort. All
streams but the first carry blocks only.

A frame is {body length u32, type u16, version u16} and the body, little-endian. `TreeDecoder` returns the buffers into
which the bytes of a block are received, so that they are not copied.
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
"""Blocks that a child holds beyond these ranges are sent again."""
TEXT_BYTES = 255
"""Bytes of a reason: memory that the other side can cause."""

_OPEN = struct.Struct("<HB")
_NUMBER = struct.Struct("<Q")
_CREDIT = struct.Struct("<QB")
_RANGE = struct.Struct("<QQ")
_BLOCK = struct.Struct("<IHHQ")
_BLOCK_TYPE = 50
"""Numbers from 50 on are those of this transport."""


@dataclass(frozen=True, slots=True)
class Open:
    """Opening of stream `stream` of the edge to the child in tree `tree`, by its index in the phase."""

    tree: int
    stream: int


@dataclass(frozen=True, slots=True)
class Have:
    """Ranges of blocks of the phase that the child holds; the parent sends only their numbers."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class TreeBlock:
    """Block of this tree, with its bytes."""

    number: int
    data: bytearray


@dataclass(frozen=True, slots=True)
class BlockHeld:
    """Block of this tree that the child holds."""

    number: int


@dataclass(frozen=True, slots=True)
class EdgeEnd:
    """End of the tree: the number of blocks that were sent or named on this edge."""

    entries: int


@dataclass(frozen=True, slots=True)
class EdgeCredit:
    """Acknowledgment: `entries` blocks that were sent or named here are stored at the child and at all hosts behind it.

    `full`: the child has stopped reading by its own decision.
    """

    entries: int
    full: bool


@dataclass(frozen=True, slots=True)
class TreeHeartbeat:
    """Heartbeat."""


@dataclass(frozen=True, slots=True)
class TreeAbort:
    """Departure of this end from the tree, with the reason."""

    reason: str


Message = Open | Have | TreeBlock | BlockHeld | EdgeEnd | EdgeCredit | TreeHeartbeat | TreeAbort


def _encode_have(have: Have) -> bytes:
    return b"".join(_RANGE.pack(*each) for each in have.ranges)


def _decode_have(body: bytes) -> Have:
    ranges = tuple(_RANGE.iter_unpack(body))
    if any(count == 0 or first + count > MAX_BLOCKS for first, count in ranges):
        raise RemoteProtocolError("Have has an empty range, or a block out of range")
    return Have(ranges)


def _decode_open(body: bytes) -> Open:
    tree, stream = _OPEN.unpack(body)
    if stream >= MAX_STREAMS:
        raise RemoteProtocolError(f"Open of stream {stream}; an edge has at most {MAX_STREAMS}")
    return Open(tree, stream)


def _decode_block_held(body: bytes) -> BlockHeld:
    return BlockHeld(_numbered(body))


def _numbered(body: bytes) -> int:
    (number,) = _NUMBER.unpack(body)
    if number >= MAX_BLOCKS:
        raise RemoteProtocolError(f"block {number} is out of range")
    return int(number)


def _decode_edge_end(body: bytes) -> EdgeEnd:
    return EdgeEnd(*_NUMBER.unpack(body))


def _decode_credit(body: bytes) -> EdgeCredit:
    entries, full = _CREDIT.unpack(body)
    if full > 1:
        raise RemoteProtocolError(f"EdgeCredit has a flag of {full} instead of 0 or 1")
    return EdgeCredit(entries, full == 1)


def _encode_abort(abort: TreeAbort) -> bytes:
    return abort.reason.encode(errors="replace")[:TEXT_BYTES].decode(errors="ignore").encode()


@dataclass(frozen=True, slots=True)
class _TreeForm:
    message: type[Message]
    encode: Callable[..., bytes]
    decode: Callable[[bytes], Message]
    largest: int


_FORMS: dict[int, _TreeForm] = {
    48: _TreeForm(Open, lambda it: _OPEN.pack(it.tree, it.stream), _decode_open, _OPEN.size),
    49: _TreeForm(Have, _encode_have, _decode_have, MAX_RANGES * _RANGE.size),
    51: _TreeForm(BlockHeld, lambda it: _NUMBER.pack(it.number), _decode_block_held, _NUMBER.size),
    52: _TreeForm(EdgeEnd, lambda it: _NUMBER.pack(it.entries), _decode_edge_end, _NUMBER.size),
    53: _TreeForm(EdgeCredit, lambda it: _CREDIT.pack(it.entries, it.full), _decode_credit, _CREDIT.size),
    54: _TreeForm(TreeHeartbeat, lambda it: b"", lambda body: TreeHeartbeat(), 0),
    55: _TreeForm(TreeAbort, _encode_abort, lambda body: TreeAbort(safe_reason(body.decode())), TEXT_BYTES),
}
_TYPES: dict[type[Message], int] = {form.message: number for number, form in _FORMS.items()}


def encode(message: Message) -> bytes:
    """Encode the message as one frame. Raise LocalProtocolError if a field is too large."""
    if isinstance(message, TreeBlock):
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
    """Return the bytes that precede the data of a block."""
    return _BLOCK.pack(_NUMBER.size + length, _BLOCK_TYPE, VERSION, number)


class TreeDecoder:
    """Decoder of messages from a byte stream that does not copy the data of blocks.

    `check` receives the number and the length of a block, and raises RemoteProtocolError if it is not expected.
    """

    def __init__(self, check: Callable[[int, int], None]) -> None:
        self._check = check
        self._ahead = memoryview(bytearray(_AHEAD_BYTES))
        self._read = bytearray()
        self._number = 0
        self._data: bytearray | None = None
        self._rest = memoryview(b"")

    def room(self) -> list[memoryview]:
        """Return the buffers for the bytes that come next, in this order."""
        return [self._rest, self._ahead] if self._data is not None else [self._ahead]

    def filled(self, count: int) -> list[Message]:
        """Consume `count` bytes that were received into the buffers and return the messages that are now complete.

        Raise RemoteProtocolError for an invalid message, before its body is received: close the connection then.
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

    def _finish_block(self) -> TreeBlock:
        assert self._data is not None
        block, self._data = TreeBlock(self._number, self._data), None
        return block

    def _next(self) -> Message | None:
        if self._data is not None or len(self._read) < FRAME.size:
            return None
        length, number, version = FRAME.unpack_from(self._read)
        if version != VERSION:
            raise RemoteProtocolError(f"protocol version {version} instead of {VERSION}; update the older side")
        if number == _BLOCK_TYPE:
            return self._begin_block(length)
        form = _FORMS.get(number)
        if form is None or length > form.largest:
            raise RemoteProtocolError(f"unknown tree message type {number}, or wrong length {length}")
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

    def _begin_block(self, length: int) -> TreeBlock | None:
        """Start receiving the bytes of a block; return it if it is complete."""
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
"""Bytes read behind a block: the head of the next message, with little of its data, which would be copied."""
