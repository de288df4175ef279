"""Cuts a byte stream at line ends and semicolons, except inside quotes, comments and terminal control sequences.

Theory of operation. A finite automaton without lookahead reads every byte once, so the cuts cannot depend on how the
stream was chunked. Each mode knows the bytes that matter to it (a regular expression finds the next one, the rest is
skipped at C speed) and where each of them leads; a byte that matters but has no entry is looked at again in the
mode's fallback. In a payload a quoted text may contain line breaks (`PAYLOAD`); between messages it may not
(`BETWEEN`), so that a stray quote cannot swallow the messages after it. A comment always ends with its line.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple


class End(Enum):
    """What ended a segment."""

    LINE = auto()
    SEMICOLON = auto()
    TOO_LONG = auto()


class Segment(NamedTuple):
    """The text between two cuts, without the byte that ended it."""

    text: bytes
    end: End


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
    leads: dict[int, _Mode]
    fallback: _Mode


ScanRules = dict[_Mode, _Rule]


def _rule(matters: bytes, leads: dict[bytes, _Mode], fallback: _Mode = _Mode.PLAIN) -> _Rule:
    return _Rule(
        re.compile(matters, re.DOTALL), {byte: mode for text, mode in leads.items() for byte in text}, fallback
    )


PAYLOAD: ScanRules = {
    _Mode.PLAIN: _rule(
        rb'["/;\r\n\x1b]',
        {b'"': _Mode.QUOTE, b"/": _Mode.SLASH, b";\r\n": _Mode.CUT, b"\x1b": _Mode.ESCAPE},
    ),
    _Mode.SLASH: _rule(rb".", {b"*": _Mode.COMMENT}),
    _Mode.COMMENT: _rule(rb"[*\r\n]", {b"*": _Mode.STAR, b"\r\n": _Mode.CUT}),
    _Mode.STAR: _rule(rb".", {b"/": _Mode.PLAIN}, _Mode.COMMENT),
    _Mode.QUOTE: _rule(rb'["\\]', {b'"': _Mode.PLAIN, b"\\": _Mode.BACKSLASH}),
    _Mode.BACKSLASH: _rule(rb".", {b'"\\': _Mode.QUOTE}, _Mode.QUOTE),
    _Mode.ESCAPE: _rule(rb".", {b"[": _Mode.SEQUENCE}),
    _Mode.SEQUENCE: _rule(rb"[^\x20-\x3f]", {bytes(range(0x40, 0x7F)): _Mode.PLAIN}),
}
"""Inside a message: quoted text may contain anything."""

BETWEEN: ScanRules = PAYLOAD | {
    _Mode.QUOTE: _rule(rb'["\\\r\n]', {b'"': _Mode.PLAIN, b"\\": _Mode.BACKSLASH, b"\r\n": _Mode.CUT}),
}
"""Between messages: a line end also ends quoted text."""


class Scanner:
    """Holds the bytes that were pushed and hands them out cut into segments."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0
        self._at = 0
        self._mode = _Mode.PLAIN

    def push(self, data: bytes) -> None:
        """Append what arrived."""
        if self._start:
            del self._buffer[: self._start]
            self._at -= self._start
            self._start = 0
        self._buffer += data

    def next_segment(self, rules: ScanRules, limit: int) -> Segment | None:
        """The next segment, or None if its end has not arrived.

        A segment that reaches `limit` bytes without an end is handed out as TOO_LONG and scanning starts afresh
        after it. `rules` and `limit` must stay the same until a segment has been handed out.
        """
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
            mode = rule.leads.get(byte)
            if mode is _Mode.CUT:
                return self._cut(End.SEMICOLON if byte == ord(";") else End.LINE)
            self._at += mode is not None
            self._mode = mode or rule.fallback
        return self._cut(End.TOO_LONG) if self._at == last else None

    def _cut(self, end: End) -> Segment:
        segment = Segment(bytes(self._buffer[self._start : self._at]), end)
        self._at += end is not End.TOO_LONG
        self._start = self._at
        self._mode = _Mode.PLAIN
        return segment
