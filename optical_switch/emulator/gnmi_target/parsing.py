"""Values of gNMI as rows of CONFIG_DB, for `replace` and `update`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from blast_base.json_types import JsonObject, JsonValue
from optical_switch.emulator.gnmi_target.paths import Depth, Notation, PathSelection
from optical_switch.emulator.gnmi_target.refusals import invalid, unsupported
from optical_switch.emulator.gnmi_target.tables import (
    CONFIG_DB,
    MODEL,
    SEPARATOR,
    LeafSchema,
    RowId,
    TableSchema,
    tables_of,
)
from optical_switch.printable import printable
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

MAX_VALUE = 255
"""Characters of one value. The model has no limit; a label of a port that is longer fits on no screen."""

NewRows = dict[RowId, dict[str, str]]
"""Rows with their new fields."""


def decode(value: gnmi.TypedValue, text: str) -> JsonValue:
    """Return the JSON in a value for the path `text`.

    Raises
    ------
    RpcRefusalError
        UNIMPLEMENTED for another encoding, INVALID_ARGUMENT if it is not JSON.
    """
    encoding = value.WhichOneof("value")
    if encoding is None:
        raise invalid(f"{text}: the value is missing")
    if encoding not in {"json_val", "json_ietf_val"}:
        raise unsupported(f"{text}: a value in {encoding} is not supported: use json_ietf_val or json_val")
    try:
        return json.loads(value.json_ietf_val if encoding == "json_ietf_val" else value.json_val)
    # Deeply nested arrays exhaust the stack of the parser.
    except (ValueError, RecursionError) as error:
        raise invalid(f"{text}: the value is not JSON: a text needs quotation marks") from error


def new_rows(selection: PathSelection, value: JsonValue) -> NewRows:
    """Return the rows that a value sets at a path without wildcards.

    Raises
    ------
    RpcRefusalError
        INVALID_ARGUMENT if the value does not have the form of the model.
    """
    if selection.depth >= Depth.ROW:
        return _one_row(selection, value)
    content = _object(value, selection.text)
    if selection.depth is Depth.TOP:
        content = _object(_only_member(content, MODEL, selection.text), selection.text)
    if selection.depth is Depth.TABLE:
        return _table_rows(selection, selection.tables[0], content)
    found: NewRows = {}
    known = {table.name: table for table in tables_of(CONFIG_DB)}
    for name, inner in content.items():
        table = known.get(_plain(name))
        if table is None:
            raise invalid(f"{selection.text}: the value has an unknown or read-only table {printable(name)}")
        found |= _table_rows(selection, table, _object(inner, selection.text))
    return found


def _one_row(selection: PathSelection, value: JsonValue) -> NewRows:
    pattern = selection.patterns[0]
    row = RowId(pattern.table.name, tuple(part for part in pattern.key if part is not None))
    if selection.depth is Depth.LEAF:
        assert pattern.leaf is not None, "a path without wildcards names its leaf"
        return {row: _leaves(selection, pattern.table, row, {pattern.leaf: value})}
    content = _object(value, selection.text)
    if not content:
        raise invalid(f"{selection.text}: an empty value is no entry of a list (gNMI 3.4.4): delete the path instead")
    return {row: _leaves(selection, pattern.table, row, content)}


def _table_rows(selection: PathSelection, table: TableSchema, content: JsonObject) -> NewRows:
    found: NewRows = {}
    for key, entry in _entries(selection, table, content):
        if len(key) != len(table.keys) or not all(key):
            raise invalid(f"{selection.text}: an entry of {table.name} has no complete key")
        row = RowId(table.name, key)
        found[row] = _leaves(selection, table, row, _object(entry, selection.text))
    return found


def _entries(
    selection: PathSelection, table: TableSchema, content: JsonObject
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Yield the key and the value of each entry of a table."""
    if selection.notation is not Notation.YANG:
        yield from ((tuple(key.split(SEPARATOR)), entry) for key, entry in content.items())
    elif content:
        entries = _only_member(content, table.list_name, selection.text)
        if not isinstance(entries, list):
            raise invalid(f"{selection.text}: {table.list_name} must be an array")
        for entry in entries:
            leaves = {_plain(name): value for name, value in _object(entry, selection.text).items()}
            key = tuple(value for name in table.keys if isinstance(value := leaves.get(name), str))
            yield key, entry


def _leaves(selection: PathSelection, table: TableSchema, row: RowId, content: JsonObject) -> dict[str, str]:
    """Return the fields of a row; a key leaf may be repeated, but not changed (gNMI 3.4.5)."""
    fields: dict[str, str] = {}
    for name, value in content.items():
        plain = _plain(name) if selection.notation is Notation.YANG else name
        if selection.notation is Notation.YANG and plain in table.keys:
            if value != row.key[table.keys.index(plain)]:
                raise invalid(f"{selection.text}: {plain} differs from the key of the entry (gNMI 3.4.5)")
            continue
        leaf = table.leaf(plain)
        if leaf is None:
            raise invalid(f"{selection.text}: {row.table} has no leaf {printable(name)}")
        fields[leaf.field] = _checked(selection, leaf, value)
    return fields


def _checked(selection: PathSelection, leaf: LeafSchema, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise invalid(f"{selection.text}: {leaf.name} must be a text")
    if len(value) > MAX_VALUE:
        raise invalid(f"{selection.text}: {leaf.name} has {len(value)} characters: use at most {MAX_VALUE}")
    if leaf.choices and value not in leaf.choices:
        allowed = ", ".join(sorted(leaf.choices))
        raise invalid(f"{selection.text}: {leaf.name} cannot be {printable(value)}: use one of {allowed}")
    return value


def _only_member(content: JsonObject, name: str, text: str) -> JsonValue:
    inner = {_plain(key): value for key, value in content.items()}
    if inner.keys() != {name}:
        raise invalid(f"{text}: the value must have {name} and nothing else")
    return inner[name]


def _object(value: JsonValue, text: str) -> JsonObject:
    if not isinstance(value, dict):
        raise invalid(f"{text}: the value must be a JSON object")
    return value


def _plain(name: str) -> str:
    """Return a name without its module."""
    return name.removeprefix(f"{MODEL}:")
