"""Splits a byte stream at line ends and semicolons, except inside quotes, comments and terminal control sequences.

Theory of operation. A finite automaton without lookahead reads every byte once, so the cuts cannot depend on how the
stream was chunked. Each mode has the bytes that matter to it (a regular expression finds the next one, the rest is
skipped at C speed) and the mode that follows each of them; a byte that matters but has no entry is read again in the
mode's fallback. In a payload, quoted text may contain line breaks (`PAYLOAD`); between messages it may not (`BETWEEN`),
so that a stray quote cannot swallow the messages after it. A comment always ends with its line.

Quoted text that contains a whole message heading (`SID date time` and the line after it) was never closed: no switch
quotes its own headings. The segment ends before the heading (`UNCLOSED`), and scanning restarts there. The end of the
second line decides this from the preceding bytes, so this too cannot depend on the chunks.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple


class SegmentEnd(Enum):
    """The reason why a segment ended."""

    LINE = auto()
    SEMICOLON = auto()
    TOO_LONG = auto()
    UNCLOSED = auto()


class Segment(NamedTuple):
    """The text between two cuts, without the byte that ended it. A line without text is not a segment."""

    text: bytes
    end: SegmentEnd


class _Mode(Enum):
    PLAIN = auto()
    SLASH = auto()
    COMMENT = auto()
    STAR = auto()
    QUOTE = auto()
    BACKSLASH = auto()
    ESCAPE = auto()
    SEQUENCE = auto()
    CUT = auto()


class _Rule(NamedTuple):
    matters: re.Pattern[bytes]
    next_modes: dict[int, _Mode]
    fallback: _Mode


_FIRST_LINE = re.compile(rb".{0,256}\d\d-\d\d-\d\d[ \t]+\d\d:\d\d:\d\d")
_SECOND_LINE = re.compile(
    rb"[ \t]*(?:M[ \t]+\S{1,80}[ \t]+(?:COMPLD|DENY|PRTL|DELAY|RTRV)\b"
    rb"|(?:\*C|\*\*|\*\^?|A)[ \t]+\S{1,80}[ \t]+REPT\b).{0,256}",
    re.IGNORECASE,
)
_TEXT = re.compile(rb"[^\r\n]")
_HEADING_SIZE = 800
"""An upper bound of the length of a heading, in bytes."""

ScanRules = dict[_Mode, _Rule]


def _rule(matters: bytes, next_modes: dict[bytes, _Mode], fallback: _Mode = _Mode.PLAIN) -> _Rule:
    return _Rule(
        re.compile(matters, re.DOTALL), {byte: mode for text, mode in next_modes.items() for byte in text}, fallback
    )


PAYLOAD: ScanRules = {
    _Mode.PLAIN: _rule(
        rb'["/;\r\n\x1b]',
        {b'"': _Mode.QUOTE, b"/": _Mode.SLASH, b";\r\n": _Mode.CUT, b"\x1b": _Mode.ESCAPE},
    ),
    _Mode.SLASH: _rule(rb".", {b"*": _Mode.COMMENT}),
    _Mode.COMMENT: _rule(rb"[*\r\n]", {b"*": _Mode.STAR, b"\r\n": _Mode.CUT}),
    _Mode.STAR: _rule(rb".", {b"/": _Mode.PLAIN}, _Mode.COMMENT),
    _Mode.QUOTE: _rule(rb'["\\\r\n]', {b'"': _Mode.PLAIN, b"\\": _Mode.BACKSLASH, b"\r\n": _Mode.QUOTE}),
    _Mode.BACKSLASH: _rule(rb".", {b'"\\': _Mode.QUOTE}, _Mode.QUOTE),
    _Mode.ESCAPE: _rule(rb".", {b"[": _Mode.SEQUENCE}),
    _Mode.SEQUENCE: _rule(rb"[^\x20-\x3f]", {bytes(range(0x40, 0x7F)): _Mode.PLAIN}),
}
"""Inside a message: quoted text may contain anything."""

BETWEEN: ScanRules = PAYLOAD | {
    _Mode.QUOTE: _rule(rb'["\\\r\n]', {b'"': _Mode.PLAIN, b"\\": _Mode.BACKSLASH, b"\r\n": _Mode.CUT}),
}
"""Between messages: a line end also ends quoted text."""


COMMAND: ScanRules = PAYLOAD | {
    _Mode.PLAIN: _rule(rb'[";\r\n\x1b]', {b'"': _Mode.QUOTE, b";\r\n": _Mode.CUT, b"\x1b": _Mode.ESCAPE}),
}
"""Rules for the commands that a client sends: they have no comments."""


class Scanner:
    """A buffer of received bytes that returns them cut into segments."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0
        self._at = 0
        self._mode = _Mode.PLAIN

    def push(self, data: bytes) -> None:
        """Append received bytes."""
        if self._start:
            del self._buffer[: self._start]
            self._at -= self._start
            self._start = 0
        self._buffer += data

    def next_segment(self, rules: ScanRules, limit: int) -> Segment | None:
        """Return the next segment, or None if its end has not arrived.

        A segment that reaches `limit` bytes without an end is returned as TOO_LONG, and scanning restarts after it.
        `rules` and `limit` must stay the same until a segment has been returned.
        """
        if limit and self._at == self._start:
            begun = _TEXT.search(self._buffer, self._at)
            self._start = self._at = begun.start() if begun else len(self._buffer)
        last = self._start + limit
        stop = min(len(self._buffer), last)
        while self._at < stop:
            rule = rules[self._mode]
            found = rule.matters.search(self._buffer, self._at, stop)
            if found is None:
                self._at = stop
                break
            self._at = found.start()
            byte = self._buffer[self._at]
            mode = rule.next_modes.get(byte)
            if mode is _Mode.CUT:
                return self._cut(SegmentEnd.SEMICOLON if byte == ord(";") else SegmentEnd.LINE)
            if mode is self._mode is _Mode.QUOTE and (heading := self._heading()) is not None:
                return self._cut_before(heading)
            self._at += mode is not None
            self._mode = mode or rule.fallback
        return self._cut(SegmentEnd.TOO_LONG) if self._at == last else None

    def _heading(self) -> int | None:
        """Return the start of the heading whose second line ends here, if there is one."""
        text = bytes(self._buffer[max(self._start, self._at - _HEADING_SIZE) : self._at])
        second = max(text.rfind(b"\r"), text.rfind(b"\n")) + 1
        if not second or not _SECOND_LINE.fullmatch(text, second):
            return None
        before = text[:second].rstrip()
        first = max(map(before.rfind, (b"\r", b"\n", b";"))) + 1
        return self._at - len(text) + first if first and _FIRST_LINE.fullmatch(before, first) else None

    def _cut_before(self, at: int) -> Segment:
        segment = Segment(bytes(self._buffer[self._start : at]), SegmentEnd.UNCLOSED)
        self._start = self._at = at
        self._mode = _Mode.PLAIN
        return segment

    def rest(self) -> bytes:
        """Return the bytes that were not returned as segments, at the end of the stream."""
        rest = bytes(self._buffer[self._start :])
        self._buffer.clear()
        self._start = self._at = 0
        self._mode = _Mode.PLAIN
        return rest

    def _cut(self, end: SegmentEnd) -> Segment:
        segment = Segment(bytes(self._buffer[self._start : self._at]), end)
        self._at += end is not SegmentEnd.TOO_LONG
        self._start = self._at
        self._mode = _Mode.PLAIN
        return segment
