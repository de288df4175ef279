"""Records as they are written: checked, their bodies as JSON text. Every store writes the same."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from blast_controller.core.model.records import Record
from blast_controller.store.errors import UnstorableError
from blast_controller.store.interface import RESERVATION

EPOCH_KIND, EPOCH_KEY, EPOCH_NOTE = "meta", "epoch", "opened"
"""The entry of an opening of the store in the history (it is no row of the state)."""

_UNCHANGED = frozenset({str, int, bool, type(None), msgspec.Raw})
"""The types of most values, which JSON returns as they are."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record ready to be written; `body` is JSON text, None where the thing is forgotten and holds nothing."""

    kind: str
    key: str
    body: str | None
    elements: frozenset[str]
    note: str


def to_row(record: Record) -> Row:
    """Check a record and encode it. Raises UnstorableError."""
    if record.elements and (record.kind != RESERVATION or record.body is None):
        raise UnstorableError(record.kind, record.key, "only a live reservation holds elements")
    try:
        body = None if record.body is None else encode(record.body)
        "".join((record.kind, record.key, *record.elements)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableError(record.kind, record.key, str(error)) from error
    # A note is for people: one that no encoding has is no reason to stop writing the journal.
    note = record.note.encode(errors="backslashreplace").decode()
    return Row(record.kind, record.key, body, record.elements, note)


def encode(body: object) -> str:
    """Encode as JSON, dataclasses as objects. Raises TypeError, ValueError or RecursionError if it is not possible."""
    _check((body,))
    try:
        return msgspec.json.encode(body).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which UTF-8 lacks and JSON can escape.
        return json.dumps(body, default=_plain, allow_nan=False, separators=(",", ":"))


def _plain(value: object) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)


def _check(values: Iterable[object]) -> None:
    """Raise an error for values that would be read back as others: infinite numbers as null, sets as lists."""
    for value in values:
        kind = type(value)
        if kind in _UNCHANGED:
            continue
        if kind is float and not math.isfinite(value):  # type: ignore[arg-type]
            raise ValueError(f"JSON has no number {value}")
        if isinstance(value, dict):
            _check(value.values())
        elif isinstance(value, list):
            _check(value)
        elif isinstance(value, set | frozenset):
            raise TypeError("JSON has no sets")


def decode(text: str | None) -> Any:
    """Return the body behind JSON text. Raises ValueError for text that is no JSON."""
    return None if text is None else json.loads(text)
