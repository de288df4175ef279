"""Records as they are written: checked, their bodies as JSON text. Every store writes the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass

import msgspec

from blast_base.json_types import JsonValue
from blast_controller.core.model.records import Record
from blast_controller.store.errors import UnstorableError
from blast_controller.store.interface import RESERVATION

EPOCH_KIND, EPOCH_KEY, EPOCH_NOTE = "meta", "epoch", "opened"
"""The entry of an opening of the store in the history (it is no row of the state)."""

_COMMON = frozenset((str, int, bool, type(None), msgspec.Raw))
"""The types whose encodings agree; text that is encoded already (`Raw`) has no fractions."""
_DELETE = "\x7f"
"""The only ASCII character that `json` escapes and msgspec does not."""


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
    """Encode as JSON, dataclasses as objects. Raises TypeError, ValueError or RecursionError if it is not possible.

    The text is exactly that of `json`: a reader of the journal in etcd, perhaps of another release, decodes and encodes
    a body before it computes the digest.
    """
    if _is_common((body,)):
        with suppress(UnicodeEncodeError):
            text = msgspec.json.encode(body).decode()
            if text.isascii() and _DELETE not in text:
                return text
    return json.dumps(body, default=_plain, allow_nan=False, separators=(",", ":"))


def _is_common(values: Iterable[JsonValue]) -> bool:
    """Return true if msgspec encodes these types and numbers as `json` does, which takes several times as long."""
    for value in values:
        kind = type(value)
        if kind in _COMMON:
            continue
        if kind is float:
            # Others have an exponent, or are infinite.
            common = value == 0 or 1e-4 <= abs(value) < 1e16
        elif kind is dict:
            common = _is_common(value.values())
        elif kind is list or kind is tuple:
            common = _is_common(value)
        else:
            names = getattr(kind, "__dataclass_fields__", None)
            common = names is not None and _is_common([getattr(value, name) for name in names])
        if not common:
            return False
    return True


def _plain(value: object) -> object:
    """Return what `json` is to encode instead of a value that it does not know."""
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode(text: str | None) -> JsonValue:
    """Return the body behind JSON text. Raises ValueError for text that is no JSON."""
    return None if text is None else json.loads(text)
