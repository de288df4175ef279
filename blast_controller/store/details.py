"""Entries of the history as the Thrift call `journal` carries them: sequence, kind, and the rest as JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from blast_controller.store.interface import Entry
from blast_controller.store.rows import encode

MAX_BYTES = 512 << 10
"""The limit of the entries of one answer together: half of the largest frame, as a safety margin."""


CHUNK = 50
"""Entries read at a time: a request may have a megabyte, and most of what is asked for may not fit."""


class InvalidEntryError(ValueError):
    """An invalid entry of a journal from the peer."""


def details(entry: Entry) -> str:
    """Return the contents of Thrift's `JournalEntry.json`."""
    return encode({"at": entry.at, "epoch": entry.epoch, "key": entry.key, "note": entry.note, "body": entry.body})


def from_details(sequence: int, kind: str, text: str) -> Entry:
    """Return the entry behind `details`. Raises InvalidEntryError."""
    try:
        match json.loads(text):
            case {
                "at": float(at) | int(at),
                "epoch": int(epoch),
                "key": str(key),
                "note": str(note),
                "body": (dict() | None) as body,
            }:
                return Entry(sequence, float(at), epoch, kind, key, note, body)
    except (ValueError, OverflowError, RecursionError) as error:
        raise InvalidEntryError(f"entry {sequence} of the journal is malformed") from error
    raise InvalidEntryError(f"entry {sequence} of the journal is incomplete")


def page(entries: Iterable[Entry], max_bytes: int = MAX_BYTES) -> list[tuple[int, str, str]]:
    """Return as many of the first entries (sequence, kind, details) as fit into one answer.

    At least one, if there are any. The body of an entry that is too large by itself is left out, with a remark in its
    note.
    """
    found: list[tuple[int, str, str]] = []
    left = max_bytes
    for entry in entries:
        text = details(entry)
        if len(text) > max_bytes:
            text = details(replace(entry, body=None, note=f"{entry.note} (too large to show: {len(text)} bytes)"))
        left -= len(text)
        if left < 0 and found:
            break
        found.append((entry.sequence, entry.kind, text))
    return found


def read_page(
    read: Callable[[int, int], Sequence[Entry]], after_sequence: int, limit: int
) -> list[tuple[int, str, str]]:
    """Return the answer to the Thrift call `journal`, from a store's `journal`. Raises JournalError as that does."""
    return page(_in_chunks(read, after_sequence, limit))


def _in_chunks(read: Callable[[int, int], Sequence[Entry]], after: int, limit: int) -> Iterator[Entry]:
    while limit > 0:
        found = read(after, min(limit, CHUNK))
        yield from found
        if not found:
            return
        after, limit = found[-1].sequence, limit - len(found)
