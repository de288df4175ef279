"""Framing of messages on the SSH channel, both versions of RFC 6242: bytes in, messages out, and no IO.

A session begins with the end-of-message framing (section 4.3) and goes on with chunks (section 4.2) after the two
hello messages if both peers announce base version 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_MESSAGE = 1 << 20
"""Bytes of a message. An edit of all circuits of the largest switches takes about 100 kB."""

END_OF_MESSAGE = b"]]>]]>"

_HEADER = re.compile(rb"\n#([1-9][0-9]{0,9})\n|\n##\n")
_PART_OF_HEADER = re.compile(rb"\n?|\n#(#|[1-9][0-9]{0,9})?")


class ServerFramingError(Exception):
    """A peer violates the framing: the session must end, since no message boundary can be trusted any more."""


class MessageReader:
    """The messages in a stream of bytes; set `chunked` to change the framing after a message."""

    def __init__(self) -> None:
        self.chunked = False
        self._buffer = bytearray()
        self._scanned = 0
        self._message: bytearray | None = None
        self._missing = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the messages that `data` completes. Raises `ServerFramingError`."""
        self._buffer += data
        while (message := self._chunked() if self.chunked else self._delimited()) is not None:
            yield message

    def _delimited(self) -> bytes | None:
        end = self._buffer.find(END_OF_MESSAGE, self._scanned)
        self._scanned = max(0, len(self._buffer) - len(END_OF_MESSAGE) + 1)
        if (self._scanned if end < 0 else end) > MAX_MESSAGE:
            raise ServerFramingError(f"a message has more than {MAX_MESSAGE} bytes")
        if end < 0:
            return None
        message = bytes(self._buffer[:end])
        del self._buffer[: end + len(END_OF_MESSAGE)]
        self._scanned = 0
        return message

    def _chunked(self) -> bytes | None:
        position = 0
        try:
            while True:
                if self._missing:
                    part = self._buffer[position : position + self._missing]
                    position += len(part)
                    self._missing -= len(part)
                    assert self._message is not None
                    self._message += part
                    if self._missing:
                        return None
                header = _HEADER.match(self._buffer, position)
                if header is None:
                    self._check_incomplete(position)
                    return None
                position = header.end()
                if header[1] is None:
                    return self._end_of_chunks()
                self._begin_chunk(int(header[1]))
        finally:
            del self._buffer[:position]

    def _check_incomplete(self, position: int) -> None:
        if not _PART_OF_HEADER.fullmatch(self._buffer, position):
            raise ServerFramingError("the bytes between chunks are no chunk header")

    def _begin_chunk(self, size: int) -> None:
        if self._message is None:
            self._message = bytearray()
        if len(self._message) + size > MAX_MESSAGE:
            raise ServerFramingError(f"a message has more than {MAX_MESSAGE} bytes")
        self._missing = size

    def _end_of_chunks(self) -> bytes:
        if self._message is None:
            raise ServerFramingError("a message has no chunk")
        message, self._message = bytes(self._message), None
        return message


def framed(message: str, *, chunked: bool) -> bytes:
    """Return the bytes of a message on the channel."""
    data = message.encode()
    # An escaped ">" cannot end a message: the end of the older framing never occurs in the text of XML.
    return b"\n#%d\n%b\n##\n" % (len(data), data) if chunked else data + END_OF_MESSAGE
