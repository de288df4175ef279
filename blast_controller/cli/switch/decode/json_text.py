"""JSON values in text, one after the other, over any number of lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, UNPARSED_BYTES, OutsideText

MAX_JSON_DEPTH = 128
"""Nested objects and arrays: the output of gnmic has some ten. Python's parser would end at its limit of recursion."""

_MARK = re.compile(rb'["\\{}\[\]]')
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_QUOTE, _ESCAPE = b'"'[0], b"\\"[0]


class JsonValue(NamedTuple):
    """A value."""

    value: object


class JsonGarbage(NamedTuple):
    """Text that is no object or array, of which only the beginning is kept."""

    content: bytes
    reason: str


OUTSIDE = "text between the values is no JSON"
CUT_OFF = "the transcript ends inside a value"
TOO_LONG = f"a value of more than {MAX_TEXT_MESSAGE} bytes"


class JsonTextReader:
    """A reader of objects and arrays, in whatever pieces they arrive."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._at = 0
        """Bytes that have been looked at."""
        self._depth = self._deepest = 0
        self._quoted = False
        self._outside = OutsideText()

    def feed(self, data: bytes) -> Iterator[JsonValue | JsonGarbage]:
        """Return the values that `data` completes."""
        self._text += data
        while (mark := _MARK.search(self._text, self._at)) is not None:
            sign = mark[0][0]
            if sign == _ESCAPE and self._quoted:
                if mark.end() == len(self._text):
                    self._at = mark.start()
                    break
                self._at = mark.end() + 1
                continue
            self._at = mark.end()
            yield from self._take(sign, mark.start())
        else:
            self._at = len(self._text)
        if not self._depth:
            self._leave_out(self._at)
        elif len(self._text) > MAX_TEXT_MESSAGE:
            yield JsonGarbage(self._drop(), TOO_LONG)

    def finish(self) -> Iterator[JsonGarbage]:
        """Return the unfinished value, or the text, at the end."""
        self._at = len(self._text)
        if self._depth:
            yield JsonGarbage(self._drop(), CUT_OFF)
        yield from self._outside_text()

    def _take(self, sign: int, start: int) -> Iterator[JsonValue | JsonGarbage]:
        if sign == _QUOTE:
            # Quotes outside values are those of some other text, and need not be closed.
            self._quoted = self._depth > 0 and not self._quoted
        elif self._quoted:
            return
        elif sign in _OPENING:
            if not self._depth:
                self._leave_out(start)
            self._depth += 1
            self._deepest = max(self._deepest, self._depth)
        elif sign in _CLOSING and self._depth:
            self._depth -= 1
            if not self._depth:
                yield from self._outside_text()
                yield self._value()

    def _value(self) -> JsonValue | JsonGarbage:
        content, deepest = bytes(self._text[: self._at]), self._deepest
        self._drop()
        if deepest > MAX_JSON_DEPTH:
            return JsonGarbage(content[:UNPARSED_BYTES], f"objects and arrays in more than {MAX_JSON_DEPTH} levels")
        try:
            return JsonValue(json.loads(content))
        except ValueError as error:
            return JsonGarbage(content[:UNPARSED_BYTES], f"no JSON: {error}")

    def _leave_out(self, size: int) -> None:
        """Drop text outside values, of which the beginning is reported."""
        self._outside.add(bytes(self._text[:size]))
        del self._text[:size]
        self._at -= size

    def _drop(self) -> bytes:
        """Drop the text that has been looked at, and return its beginning."""
        dropped = bytes(self._text[: min(self._at, UNPARSED_BYTES)])
        del self._text[: self._at]
        self._at = self._depth = self._deepest = 0
        self._quoted = False
        return dropped

    def _outside_text(self) -> Iterator[JsonGarbage]:
        text = self._outside.take()
        if text:
            yield JsonGarbage(text, OUTSIDE)
