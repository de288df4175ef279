"""Encoding of values in etcd: JSON, compressed if that saves space."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from blast_base.json_types import JsonValue
from blast_controller.store.checksums import digest_of
from blast_controller.store.contents import StateRow, Written
from blast_controller.store.interface import Entry
from blast_controller.store.rows import Row, encode

WORTH_COMPRESSING = 16 << 10
"""Bytes from which on a value is compressed; below that the time for it is not worth the bytes."""
LARGEST_VALUE = 5 << 18
"""Bytes, compressed: below the 1.5 MiB that etcd takes in one request by default, with room for what goes with it."""
LARGEST_BATCH = 128 << 10
"""The limit in bytes, uncompressed, of entries under one key, unless it is one entry: partly trimmed values are
rewritten."""
FORMAT = 3
"""Of all that is under the prefix."""
_OF_ZLIB = b"\x78"


def pack(text: str) -> bytes:
    """Return JSON text as it is stored: it begins with a bracket, what is compressed with another byte."""
    plain = text.encode()
    return plain if len(plain) < WORTH_COMPRESSING else zlib.compress(plain, 1)


def unpack(value: bytes) -> JsonValue:
    """Decode the result of `pack`. Raises ValueError for other values."""
    try:
        return json.loads(zlib.decompress(value) if value.startswith(_OF_ZLIB) else value)
    except zlib.error as error:
        raise ValueError(str(error)) from error


# ------------------------------------------------------------------------------------------------------------ head


@dataclass(frozen=True, slots=True)
class Head:
    """Where the journal stands: its latest sequence, the bytes that its history is reckoned at, and its epoch.

    `change` counts what was written since the journal is there: with the epoch it names one transaction. `staged` is
    how many parts of the latest commit lie under `staged/` and count as written. `state` is what the digests of the
    state add up to, `batches` the number of keys of the history.
    """

    sequence: int
    history_bytes: int
    epoch: int
    change: int
    staged: int = 0
    state: int = 0
    batches: int = 0

    def pack(self) -> bytes:
        """Encode the value with its own digest."""
        fields = [FORMAT, *astuple(self)]
        return pack(encode([*fields, digest_of(*fields)]))


def head_format(value: bytes) -> int:
    """Return the format that a head names. Raises ValueError."""
    match unpack(value):
        case [int(found), *_]:
            return found
    raise ValueError("it names no format")


def to_head(value: bytes) -> Head:
    """Return a head of our format. Raises ValueError."""
    match unpack(value):
        case [*fields, int(digest)] if digest == digest_of(*fields) and len(fields) == len(Head.__slots__) + 1:
            return Head(*fields[1:])
    raise ValueError("its head is incomplete or changed")


# ----------------------------------------------------------------------------------------------------------- state


def pack_thing(row: Row | StateRow) -> bytes:
    """Return a row of the state as it is stored.

    It includes the elements that the object holds, so that none is held without it.
    """
    assert row.body is not None
    return pack(f"[{encode(row.kind)},{encode(row.key)},{encode(sorted(row.elements))},{row.body}]")


def to_thing(first: int, value: bytes) -> tuple[StateRow, JsonValue]:
    """Return a row of the state, and its body decoded. Raises ValueError."""
    match unpack(value):
        case [str(kind), str(key), [*elements], body]:
            return StateRow(first, kind, key, encode(body), frozenset(elements)), body
    raise ValueError("a row of the state is incomplete")


# --------------------------------------------------------------------------------------------------------- history


def batches(entries: Sequence[Written]) -> Iterator[tuple[int, bytes]]:
    """Encode consecutive entries as values, each with the sequence of its last entry."""
    lines: list[str] = []
    size = 0
    for entry in entries:
        line = _line(entry)
        if lines and size + len(line) > LARGEST_BATCH:
            yield entry.sequence - 1, _batch(entry.sequence - 1, lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield entries[-1].sequence, _batch(entries[-1].sequence, lines)


def to_entries(last: int, value: bytes) -> list[Entry]:
    """Return the entries of a value of the history. Raises ValueError."""
    found = unpack(value)
    if not isinstance(found, list) or len(found) < 2:
        raise ValueError("a value of the history is not a list of entries behind their digest")
    digest, *entries = found
    if digest != _digest(last, encode(entries)[1:-1]):
        raise ValueError(f"the entries up to {last} of the history are changed")
    return [_entry(sequence, one) for sequence, one in enumerate(entries, last - len(entries) + 1)]


def text_of(body: JsonValue) -> str | None:
    """Return the original JSON text of a decoded body."""
    return None if body is None else encode(body)


def _line(entry: Written) -> str:
    beside = encode([entry.at, entry.epoch, entry.kind, entry.key, entry.note])
    return f"{beside[:-1]},{entry.body if entry.body is not None else 'null'}]"


def _batch(last: int, lines: Sequence[str]) -> bytes:
    """Return the lines behind a digest of them."""
    text = ",".join(lines)
    return pack(f"[{_digest(last, text)},{text}]")


def _digest(last: int, text: str) -> int:
    return digest_of(last, text)


def _entry(sequence: int, found: JsonValue) -> Entry:
    match found:
        case [float(at) | int(at), int(epoch), str(kind), str(key), str(note), body]:
            return Entry(sequence, float(at), epoch, kind, key, note, body)
    raise ValueError(f"entry {sequence} of the history is incomplete")
