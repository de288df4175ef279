"""Nodes of the databases as values of gNMI: JSON, in a notation of the databases or of the model (RFC 7951)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from blast_base.json_types import JsonObject, JsonValue
from optical_switch.emulator.gnmi_target.paths import Depth, Notation, PathSelection
from optical_switch.emulator.gnmi_target.tables import MODEL, SEPARATOR, TABLES, Fields, RowId, Rows, TableSchema
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes nodes.

    Parameters
    ----------
    notation : Notation
        How to name the nodes.
    is_ietf : bool
        True for JSON_IETF, False for JSON: RFC 7951 puts the module before the names of the outermost object.
    """

    notation: Notation
    is_ietf: bool

    def typed(self, value: JsonValue) -> gnmi.TypedValue:
        """Return JSON as a value of gNMI."""
        text = json.dumps(value, separators=(",", ":")).encode()
        return gnmi.TypedValue(json_ietf_val=text) if self.is_ietf else gnmi.TypedValue(json_val=text)

    def leaf(self, row: RowId, fields: Fields, name: str) -> JsonValue:
        """Return the value of a leaf that exists."""
        table = TABLES[row.table]
        if name in table.keys:
            return row.key[table.keys.index(name)]
        schema = table.leaf(name)
        assert schema is not None, "the path has been checked"
        text = fields[schema.field]
        if schema.is_list and self.notation is not Notation.DATABASE:
            return text.split(",")
        return text

    def node(self, selection: PathSelection, rows: Rows) -> JsonValue:
        """Return the value of the node that a selection without wildcards ends at.

        Returns
        -------
        JsonValue
            The value; None if the node does not exist. A container always exists (RFC 7950 section 7.5.1).
        """
        if selection.depth < Depth.ROW:
            return self._container(selection, rows)
        for row, pattern in selection.rows(rows):
            if selection.depth is Depth.ROW:
                return self.entry(row, rows[row])
            for name in pattern.leaves(row, rows[row], self.notation):
                return self.leaf(row, rows[row], name)
        return None

    def entry(self, row: RowId, fields: Fields) -> JsonObject:
        """Return the value of a row that stands alone."""
        return self._qualify(self._row(row, fields))

    def _row(self, row: RowId, fields: Fields) -> JsonObject:
        table = TABLES[row.table]
        if self.notation is Notation.DATABASE:
            return dict(fields)
        leaves = {leaf.name: self.leaf(row, fields, leaf.name) for leaf in table.leaves if leaf.field in fields}
        return leaves if self.notation is Notation.MIXED else {**dict(zip(table.keys, row.key, strict=True)), **leaves}

    def _table(self, table: TableSchema, rows: Rows) -> JsonObject:
        found = sorted(row for row in rows if row.table == table.name)
        if self.notation is not Notation.YANG:
            return {SEPARATOR.join(row.key): self._row(row, rows[row]) for row in found}
        return {table.list_name: [self._row(row, rows[row]) for row in found]} if found else {}

    def _container(self, selection: PathSelection, rows: Rows) -> JsonObject | None:
        if selection.depth is Depth.TABLE:
            if not selection.tables:
                return None
            return self._qualify(self._table(selection.tables[0], rows))
        tables = {table.name: self._table(table, rows) for table in selection.tables}
        return {f"{MODEL}:{MODEL}": tables} if selection.depth is Depth.TOP else self._qualify(tables)

    def _qualify(self, value: JsonObject) -> JsonObject:
        if self.notation is not Notation.YANG or not self.is_ietf:
            return value
        return {f"{MODEL}:{name}": inner for name, inner in value.items()}
