"""The complete contents of a journal, and their text form for export and import.

The text is JSON, one list a line: a header, the objects of the state in order of their creation, the history, and
finally the number of lines and a digest of all, without which the copy is incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from blast_controller.store.errors import JournalError
from blast_controller.store.rows import encode

NAME, FORMAT = "blast-journal", 3


class StateRow(NamedTuple):
    """A row of the state: `first` is the sequence of the entry that inserted it, `body` JSON text."""

    first: int
    kind: str
    key: str
    body: str
    elements: frozenset[str]


class Written(NamedTuple):
    """An entry of the history as it is written: as `Entry`, its body JSON text."""

    sequence: int
    at: float
    epoch: int
    kind: str
    key: str
    note: str
    body: str | None


@dataclass(frozen=True, slots=True)
class Contents:
    """A journal that was opened `epoch` times and whose latest entry is `sequence`.

    `rows` can be read once: all things, `first` growing, then the history without a gap. Reading may raise
    JournalError.
    """

    epoch: int
    sequence: int
    rows: Iterator[StateRow | Written]


class NotAnExportError(JournalError):
    """An incomplete or damaged copy of a journal."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the copy of the journal is incomplete or damaged ({reason}): repeat `blast journal export`")


class JournalExistsError(JournalError):
    """A copy would replace a journal; nothing was changed."""

    def __init__(self, place: object) -> None:
        super().__init__(f"a journal exists already at {place} and is not replaced: choose another destination")


def to_lines(contents: Contents) -> Iterator[str]:
    """Yield the lines of the text form. Raises JournalError as the rows do."""
    head = encode([NAME, FORMAT, contents.epoch, contents.sequence])
    digest = _digest(head)
    yield head
    lines = 0
    for row in contents.rows:
        if isinstance(row, StateRow):
            beside = encode(["thing", row.first, row.kind, row.key, sorted(row.elements)])
        else:
            beside = encode(["entry", row.sequence, row.at, row.epoch, row.kind, row.key, row.note])
        line = f"{beside[:-1]},{'null' if row.body is None else row.body}]"
        digest.update(line.encode() + b"\n")
        yield line
        lines += 1
    yield encode(["end", lines, digest.hexdigest()])


def _digest(head: str) -> blake2b:
    return blake2b(head.encode() + b"\n", digest_size=16)


def from_lines(lines: Iterable[str | bytes]) -> Contents:
    """Return the contents of the lines of `to_lines`. Raises NotAnExportError, as reading the rows does."""
    digest = blake2b(digest_size=16)
    parsed = _parsed(lines, digest)
    match next(parsed, None):
        case [str(name), int(found), int(epoch), int(sequence)] if (name, found) == (NAME, FORMAT):
            return Contents(epoch, sequence, checked(_rows(parsed, digest), sequence))
        case [str(name), int(found), *_] if name == NAME:
            raise NotAnExportError(
                f"it has format {found}, this release reads format {FORMAT}: use the release that wrote it"
            )
    raise NotAnExportError("its first line is not the header of a copy")


def checked(rows: Iterable[StateRow | Written], sequence: int) -> Iterator[StateRow | Written]:
    """Yield the rows, and raise NotAnExportError if they cannot be those of a journal up to `sequence`."""
    things: set[tuple[str, str]] = set()
    held: set[str] = set()
    first = entry = 0
    for row in rows:
        if isinstance(row, StateRow):
            if entry or not first < row.first <= sequence or (row.kind, row.key) in things or row.elements & held:
                raise NotAnExportError(f"the {row.kind} {row.key!r} is at a wrong place")
            first = row.first
            things.add((row.kind, row.key))
            held |= row.elements
        else:
            if entry and row.sequence != entry + 1:
                raise NotAnExportError(f"entry {row.sequence} comes after entry {entry}")
            entry = row.sequence
        yield row
    if entry != sequence:
        raise NotAnExportError(f"its history ends with entry {entry} instead of {sequence}")


def _rows(parsed: Iterator[object], digest: blake2b) -> Iterator[StateRow | Written]:
    """Yield the rows. `digest` covers all lines taken from `parsed` except the latest."""
    for before, found in enumerate(parsed):
        match found:
            case ["thing", int(first), str(kind), str(key), [*elements], dict() as body]:
                yield StateRow(first, kind, key, encode(body), frozenset(map(str, elements)))
            case ["entry", int(sequence), float() | int() as at, int(epoch), str(kind), str(key), str(note), body]:
                yield Written(sequence, at, epoch, kind, key, note, None if body is None else encode(body))
            case ["end", int(lines), str(written)] if lines == before:
                if written != digest.hexdigest():
                    raise NotAnExportError("its lines do not match its digest")
                return
            case _:
                raise NotAnExportError(f"line {before + 2} is malformed")
    raise NotAnExportError("its end is missing")


def _parsed(lines: Iterable[str | bytes], digest: blake2b) -> Iterator[object]:
    """Yield the parsed lines; a line is added to the digest when the next one is read."""
    for number, line in enumerate(_readable(lines), 1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise NotAnExportError(f"line {number} is not valid JSON") from error
        yield found
        written = line if isinstance(line, bytes) else line.encode(errors="replace")
        digest.update(written.rstrip(b"\r\n") + b"\n")


def _readable(lines: Iterable[str | bytes]) -> Iterator[str | bytes]:
    try:
        yield from lines
    except OSError as error:
        raise NotAnExportError(f"it cannot be read: {error.strerror}") from error
