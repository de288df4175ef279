"""Records as they are written: checked, their bodies as JSON text. Every store writes the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from blast_controller.core.model.records import Record
from blast_controller.store.errors import UnstorableError
from blast_controller.store.interface import RESERVATION

EPOCH_KIND, EPOCH_KEY, EPOCH_NOTE = "meta", "epoch", "opened"
"""The entry of an opening of the store in the history (it is no row of the state)."""


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
        body = None if record.body is None else encode(dict(record.body))
        for text in (record.kind, record.key, *record.elements):
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableError(record.kind, record.key, str(error)) from error
    # A note is for people: one that no encoding has is no reason to stop writing the journal.
    note = record.note.encode(errors="backslashreplace").decode()
    return Row(record.kind, record.key, body, record.elements, note)


def encode(body: object) -> str:
    """Encode as JSON. Raises TypeError, ValueError or RecursionError if that is not possible."""
    return json.dumps(body, allow_nan=False, separators=(",", ":"))


def decode(text: str | None) -> Any:
    """Return the body behind JSON text. Raises ValueError for text that is no JSON."""
    return None if text is None else json.loads(text)
