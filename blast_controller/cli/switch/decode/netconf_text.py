r"""Messages of NETCONF in captured bytes of either direction, or both, with any framing or none (RFC 6242).

    ... <rpc> ... </rpc> ]]>]]> \n#LENGTH\n<rpc-reply> ... \n##\n ...

A transcript of both directions has no place at which the framing changes: each side begins to send chunks when it has
received the hello of the other. So each message is found by its own start: the header of a chunk, or the first tag of a
message, which ends with the last tag of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, UNPARSED_BYTES, OutsideText

_CHUNK = re.compile(rb"\n#([1-9][0-9]{0,9})\n")
_LAST_CHUNK = b"\n##\n"
_ROOT = re.compile(rb"<((?:[\w.-]{1,64}:)?(?:hello|rpc-reply|rpc|notification))(?=[\s/>])")
_DECLARATION = re.compile(rb"<\?xml\b[^<>]{0,200}\?>\s*\Z")
_FRAMING = re.compile(rb"\]\]>\]\]>|\r?\n#(?:#|[1-9][0-9]{0,9})\r?\n")
"""Marks between messages; those of chunks remain where a terminal has changed line ends, and with them the lengths."""
MAX_MARK = 16
"""Bytes of a mark: CR, LF, #, ten digits, CR, LF."""
MAX_START = 256
"""Bytes that may be the beginning of a header, a declaration or a first tag: kept until more bytes arrive."""


class FoundMessage(NamedTuple):
    """A message without framing."""

    content: bytes


class StrayText(NamedTuple):
    """Text outside messages, or of a message without an end: its beginning, and the reason why it is no message."""

    content: bytes
    reason: str


Finding = FoundMessage | StrayText

OUTSIDE = "text between messages is no message of NETCONF"
CUT_OFF = "the transcript ends inside a message"
WRONG_LENGTH = "no chunk and no end follows a chunk: its length is wrong, or bytes are missing"
TOO_LONG = f"more than {MAX_TEXT_MESSAGE} bytes without an end"


class NetconfTextScanner:
    """A scanner of a stream of bytes; its findings do not depend on the pieces in which they arrive."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._outside = OutsideText()
        self._chunks: bytearray | None = None
        """The complete chunks of a message. None: outside a message in chunks."""
        self._searched = 0
        """Bytes of an unfinished message in which its last tag does not begin: searched once."""

    def feed(self, data: bytes) -> Iterator[Finding]:
        """Return the findings that `data` completes."""
        self._text += data
        while (found := self._next()) is not None:
            yield from found

    def finish(self) -> Iterator[Finding]:
        """Return the findings at the end."""
        # A line end completes the last mark of the framing, which captures often lack.
        yield from self.feed(b"\n")
        root = _ROOT.search(self._text)
        if self._chunks is None:
            self._leave_out(root.start() if root else len(self._text))
            yield from self._outside_text()
        rest = bytes(self._chunks or b"") + self._take(len(self._text))
        self._chunks = None
        if rest:
            yield StrayText(rest[:UNPARSED_BYTES].strip(), CUT_OFF)

    def _next(self) -> list[Finding] | None:
        """Return the next findings, which may be none. None: more bytes are needed."""
        if self._chunks is not None:
            return self._continue_chunks(self._chunks)
        root = _ROOT.search(self._text)
        header = _CHUNK.search(self._text, 0, root.start() if root else len(self._text))
        if header is not None:
            self._leave_out(header.start())
            self._chunks = bytearray()
            return self._outside_text()
        if root is not None:
            return self._unframed(root)
        self._leave_out(_start_at_end(self._text))
        return None

    def _unframed(self, root: re.Match[bytes]) -> list[Finding] | None:
        """Return the message that begins with this tag, and the text before it."""
        declaration = _DECLARATION.search(self._text, max(0, root.start() - MAX_START), root.start())
        start = declaration.start() if declaration else root.start()
        last = re.compile(rb"</%b\s*>" % re.escape(root[1]))
        end = last.search(self._text, max(root.end(), self._searched))
        empty = re.compile(rb"[^<>]*/>").match(self._text, root.end())
        if end is None and empty is None:
            self._searched = max(0, len(self._text) - len(root[1]) - MAX_START)
            if len(self._text) - start <= MAX_TEXT_MESSAGE:
                return None
            # The text after the tag is searched for the next message.
            self._leave_out(start)
            beginning = bytes(self._text[:UNPARSED_BYTES])
            self._take(root.end() - start)
            return [*self._outside_text(), StrayText(beginning, TOO_LONG)]
        length = (empty or end or root).end() - start
        self._leave_out(start)
        return [*self._outside_text(), FoundMessage(self._take(length))]

    def _continue_chunks(self, chunks: bytearray) -> list[Finding] | None:
        if self._text.startswith(_LAST_CHUNK) and chunks:
            self._take(len(_LAST_CHUNK))
            self._chunks = None
            return [FoundMessage(bytes(chunks))]
        header = _CHUNK.match(self._text)
        if header is None and _may_become_header(bytes(self._text[: MAX_START + 1])):
            return None
        if header is None or len(chunks) + int(header[1]) > MAX_TEXT_MESSAGE:
            self._take(header.end() if header else 0)
            self._chunks = None
            return [StrayText(bytes(chunks[:UNPARSED_BYTES]), TOO_LONG if header else WRONG_LENGTH)]
        size = int(header[1])
        if len(self._text) < header.end() + size:
            return None
        self._take(header.end())
        chunks += self._take(size)
        return []

    def _take(self, size: int) -> bytes:
        taken = bytes(self._text[:size])
        del self._text[:size]
        self._searched = 0
        return taken

    def _leave_out(self, size: int) -> None:
        """Drop text outside messages, of which the beginning is reported."""
        self._outside.add(_FRAMING.sub(b"", self._take(size)))

    def _outside_text(self) -> list[Finding]:
        text = self._outside.take()
        return [StrayText(text, OUTSIDE)] if text else []


def _start_at_end(text: bytearray) -> int:
    """Return the place at the end of a text without a message where one, or a mark, may begin."""
    near = max(0, len(text) - MAX_START)
    places = [place for sign in (b"<", b"\r", b"\n", b"]") if (place := text.find(sign, near)) >= 0]
    start = min(places, default=len(text))
    # Not inside a mark.
    before = max(0, start - MAX_MARK)
    return before + len(text[before:start].rstrip(b"]>\r\n#0123456789"))


def _may_become_header(start: bytes) -> bool:
    return _LAST_CHUNK.startswith(start) or re.fullmatch(rb"\n(?:#(?:[1-9][0-9]{0,9})?)?", start) is not None
