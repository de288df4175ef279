"""Values of RESP, the protocol of Redis, in captured bytes of either direction, or both; versions 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, UNPARSED_BYTES, OutsideText, plain_text

MAX_LINE = 1 << 16
"""Bytes of a line: simple strings, errors and lengths are short."""
MAX_NESTED = 16
"""Levels of arrays: replies of SCAN and of transactions have three."""

_LENGTH = re.compile(rb"-1|[0-9]{1,10}")
_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
_TYPES = re.compile(rb"[*~>%$=!+:,#(_-]")
_AGGREGATES = {b"*": 1, b"~": 1, b">": 1, b"%": 2}
"""Types of several values, with the number of values that each counted element has."""


class RedisError(NamedTuple):
    """An error reply."""

    text: str


RedisValue = str | int | float | bool | None | RedisError | list["RedisValue"]


class RespValue(NamedTuple):
    """A complete value; `is_words` is true for an array of strings, which is the form of a command."""

    value: RedisValue
    is_words: bool = False


class RespGarbage(NamedTuple):
    """Bytes that are no value, of which only the beginning is kept."""

    content: bytes
    reason: str


NO_VALUE = "no value of Redis begins here"
TOO_LONG = f"a value of more than {MAX_TEXT_MESSAGE} bytes"
CUT_OFF = "the transcript ends inside a value"


class _MalformedValueError(Exception):
    """The text is no value; the message is the reason."""


@dataclass(slots=True)
class _OpenArray:
    missing: int
    is_words: bool
    values: list[RedisValue] = field(default_factory=list)


class RespReader:
    """A reader of a stream of bytes, in whatever pieces they arrive."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._open: list[_OpenArray] = []
        self._size = 0
        """Bytes of the value that is being read."""
        self._searched = 0
        self._outside = OutsideText()
        self._reason = ""
        """Reason why the text outside values could not be read."""

    def feed(self, data: bytes) -> Iterator[RespValue | RespGarbage]:
        """Return the values that `data` completes."""
        self._data += data
        while self._data:
            try:
                found = self._step()
            except _MalformedValueError as error:
                if not self._skip(str(error)):
                    return
                continue
            if found is None:
                return
            if found:
                yield from self._outside_text()
            yield from found

    def finish(self) -> Iterator[RespGarbage]:
        """Return the unfinished value at the end."""
        if self._data and not _TYPES.match(self._data):
            self._data += b"\n"
            self._skip(NO_VALUE)
        yield from self._outside_text()
        if self._data or self._open:
            yield RespGarbage(bytes(self._data[:UNPARSED_BYTES]), CUT_OFF)
        self._data.clear()
        self._open.clear()

    def _step(self) -> list[RespValue] | None:
        """Read one element and return the value that it completes, if any. None: more bytes are needed."""
        line = self._line()
        if line is None:
            return None
        if self._size + len(line) > MAX_TEXT_MESSAGE:
            raise _MalformedValueError(TOO_LONG)
        kind, text = line[:1], line[1:]
        if kind in _AGGREGATES:
            return self._begin_array(kind, text, len(line) + 2)
        if kind in (b"$", b"=", b"!"):
            return self._long_text(kind, text, len(line) + 2)
        self._take(len(line) + 2)
        return self._add(_simple(kind, text))

    def _line(self) -> bytes | None:
        """Return the next line without its end."""
        if not _TYPES.match(self._data):
            raise _MalformedValueError(NO_VALUE)
        end = self._data.find(b"\r\n", self._searched)
        if max(end, 0) > MAX_LINE or (end < 0 and len(self._data) > MAX_LINE):
            raise _MalformedValueError(NO_VALUE)
        self._searched = max(0, len(self._data) - 1) if end < 0 else 0
        return None if end < 0 else bytes(self._data[:end])

    def _begin_array(self, kind: bytes, text: bytes, size: int) -> list[RespValue]:
        count = _count(text) * _AGGREGATES[kind]
        # Each element has bytes of its own.
        if self._size + size + count > MAX_TEXT_MESSAGE:
            raise _MalformedValueError(TOO_LONG)
        if len(self._open) >= MAX_NESTED:
            raise _MalformedValueError(f"arrays in more than {MAX_NESTED} levels")
        self._take(size)
        if count <= 0:
            return self._add(None if count < 0 else [])
        self._open.append(_OpenArray(count, is_words=kind == b"*"))
        return []

    def _long_text(self, kind: bytes, text: bytes, header: int) -> list[RespValue] | None:
        size = _count(text)
        if size < 0:
            self._take(header)
            return self._add(None)
        if self._size + size > MAX_TEXT_MESSAGE:
            raise _MalformedValueError(TOO_LONG)
        if len(self._data) < header + size + 2:
            return None
        if self._data[header + size : header + size + 2] != b"\r\n":
            raise _MalformedValueError("a text has another length than the one before it")
        content = plain_text(self._take(header + size + 2)[header:-2])
        return self._add(RedisError(content) if kind == b"!" else content, is_word=kind == b"$")

    def _add(self, value: RedisValue, *, is_word: bool = False) -> list[RespValue]:
        """Add a value to the innermost array, and close the arrays that are complete."""
        while self._open:
            array = self._open[-1]
            array.values.append(value)
            array.is_words = array.is_words and is_word
            array.missing -= 1
            if array.missing:
                return []
            self._open.pop()
            if not self._open:
                self._size = 0
                return [RespValue(array.values, array.is_words)]
            value, is_word = array.values, False
        self._size = 0
        return [RespValue(value)]

    def _take(self, size: int) -> bytes:
        taken = bytes(self._data[:size])
        del self._data[:size]
        self._size += size
        self._searched = 0
        return taken

    def _skip(self, reason: str) -> bool:
        """Drop text up to the next line, with the array in which it is; return false if its end has not arrived."""
        end = self._data.find(b"\n")
        if end < 0 and len(self._data) <= MAX_LINE:
            return False
        self._outside.add(self._take(end + 1 if end >= 0 else len(self._data)))
        self._reason = self._reason or reason
        self._open.clear()
        self._size = 0
        return True

    def _outside_text(self) -> Iterator[RespGarbage]:
        text, reason = self._outside.take(), self._reason
        self._reason = ""
        if text:
            yield RespGarbage(text, reason)


def _count(text: bytes) -> int:
    if not _LENGTH.fullmatch(text):
        raise _MalformedValueError(NO_VALUE)
    return int(text)


def _simple(kind: bytes, text: bytes) -> RedisValue:
    shown = plain_text(text)
    match kind:
        case b"-":
            return RedisError(shown)
        case b":" if _NUMBER.fullmatch(text):
            return int(text)
        case b"#":
            return text == b"t"
        case b"_":
            return None
    return shown
