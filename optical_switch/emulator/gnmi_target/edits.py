"""A gNMI `Set` as edits of CONFIG_DB: pure, so that a request is refused before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import grpc

from optical_switch.emulator.gnmi_target.parsing import NewRows, decode, new_rows
from optical_switch.emulator.gnmi_target.paths import Depth, PathSelection, select
from optical_switch.emulator.gnmi_target.ports import PortLayout
from optical_switch.emulator.gnmi_target.refusals import (
    RpcRefusalError,
    UnknownNodeError,
    exhausted,
    invalid,
    not_found,
    unsupported,
)
from optical_switch.emulator.gnmi_target.tables import CONFIG_DB, Fields, RowId, Rows
from optical_switch.printable import printable
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

MAX_OPERATIONS = 4096
"""Operations of one request: each port of the largest switches (1008 by 1008) deleted and set."""
MAX_ROWS = 8192
"""Rows of CONFIG_DB: each port and a cross-connect of the largest switches, with as much again for conflicts."""


@dataclass(frozen=True, slots=True)
class RowEdit:
    """A change of one row.

    Parameters
    ----------
    row : RowId
        The row.
    fields : Fields
        All fields of the row.
    removed : frozenset[str]
        Fields that the row no longer has.
    is_delete : bool
        True to delete the row; then there are no fields.
    """

    row: RowId
    fields: Fields = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    is_delete: bool = False


def plan_set(request: gnmi.SetRequest, rows: Rows, layout: PortLayout) -> list[RowEdit]:
    """Return the edits of a request.

    Parameters
    ----------
    request : gnmi.SetRequest
        The request.
    rows : Rows
        The rows of CONFIG_DB.
    layout : PortLayout
        The ports of the switch.

    Returns
    -------
    list[RowEdit]
        The edits, to be written in one transaction.

    Raises
    ------
    RpcRefusalError
        If an operation is not possible; then none of the request may be done (gNMI 3.4.3).
    """
    if request.union_replace:
        raise unsupported("union_replace is not supported: use replace")
    if len(request.delete) + len(request.replace) + len(request.update) > MAX_OPERATIONS:
        raise exhausted(f"a request may have {MAX_OPERATIONS} operations: split it")
    draft = _ConfigDraft(rows)
    # gNMI 3.4: first deletes, then replaces, then updates.
    for path in request.delete:
        draft.delete(_writable(select(request.prefix, path)))
    for update in request.replace:
        selection = _node_to_set(request.prefix, update.path)
        draft.replace(selection, new_rows(selection, decode(update.val, selection.text)))
    for update in request.update:
        selection = _node_to_set(request.prefix, update.path)
        draft.update(selection, new_rows(selection, decode(update.val, selection.text)))
    return draft.finish(layout)


def _node_to_set(prefix: gnmi.Path, path: gnmi.Path) -> PathSelection:
    try:
        selection = select(prefix, path)
    except UnknownNodeError as error:
        # gNMI 3.4.7: a path that is not valid is NOT_FOUND in `replace` and `update`, and only there.
        raise not_found(error.text) from error
    # gNMI 3.4.5: each key of a list is needed.
    if selection.is_wildcard or not selection.patterns:
        raise invalid(f"{selection.text}: name each key: replace and update have no wildcards")
    if selection.depth is Depth.LEAF and selection.patterns[0].leaf in selection.tables[0].keys:
        raise invalid(f"{selection.text}: a key cannot be changed: delete the entry and set another")
    return _writable(selection)


def _writable(selection: PathSelection) -> PathSelection:
    if selection.patterns and all(table.database != CONFIG_DB for table in selection.tables):
        raise RpcRefusalError(
            grpc.StatusCode.PERMISSION_DENIED, f"{selection.text}: state is read-only: change {CONFIG_DB} instead"
        )
    return selection


class _ConfigDraft:
    """CONFIG_DB with the operations that have been applied."""

    def __init__(self, rows: Rows) -> None:
        self._before = rows
        self._rows: dict[RowId, dict[str, str]] = {row: dict(fields) for row, fields in rows.items()}
        self._touched: dict[RowId, str] = {}

    def delete(self, selection: PathSelection) -> None:
        """Delete nodes; gNMI 3.4.6: missing ones are no error."""
        for row, pattern in list(selection.rows(self._rows)):
            if selection.depth is not Depth.LEAF:
                del self._rows[row]
            else:
                for name in pattern.leaves(row, self._rows[row], selection.notation):
                    if name in pattern.table.keys:
                        raise invalid(f"{selection.text}: a key cannot be deleted: delete the entry")
                    leaf = pattern.table.leaf(name)
                    assert leaf is not None, "the row has it"
                    del self._rows[row][leaf.field]
            self._touch(row, selection)

    def replace(self, selection: PathSelection, new: NewRows) -> None:
        """Set nodes, and delete all below the path that is not set (gNMI 3.4.4)."""
        if selection.depth is not Depth.LEAF:
            for row, _ in list(selection.rows(self._rows)):
                del self._rows[row]
                self._touch(row, selection)
        self.update(selection, new)

    def update(self, selection: PathSelection, new: NewRows) -> None:
        """Set nodes, and leave others as they are."""
        for row, fields in new.items():
            self._rows.setdefault(row, {}).update(fields)
            self._touch(row, selection)

    def finish(self, layout: PortLayout) -> list[RowEdit]:
        """Return the edits. Raises `RpcRefusalError` if a row would not be valid."""
        if len(self._rows) > max(MAX_ROWS, len(self._before)):
            raise exhausted(f"{CONFIG_DB} may have {MAX_ROWS} rows: delete some first")
        return [edit for row, text in self._touched.items() if (edit := self._edit(row, text, layout)) is not None]

    def _touch(self, row: RowId, selection: PathSelection) -> None:
        """Remember by which path a row has changed, for messages."""
        names_row = selection.depth >= Depth.ROW and not selection.is_wildcard
        self._touched[row] = selection.text if names_row else f"{selection.text}: {printable(str(row))}"

    def _edit(self, row: RowId, text: str, layout: PortLayout) -> RowEdit | None:
        before, after = self._before.get(row), self._rows.get(row)
        if after is None:
            return None if before is None else RowEdit(row, is_delete=True)
        fault = layout.row_fault(row, after)
        if fault:
            raise invalid(f"{text}: {fault}")
        return RowEdit(row, after, frozenset(before or ()) - after.keys())


def results(request: gnmi.SetRequest) -> Sequence[gnmi.UpdateResult]:
    """Return the result of each operation, in the order in which they were applied (gNMI 3.4.2)."""
    operations: Mapping[gnmi.UpdateResult.Operation, Sequence[gnmi.Path]] = {
        gnmi.UpdateResult.DELETE: request.delete,
        gnmi.UpdateResult.REPLACE: [update.path for update in request.replace],
        gnmi.UpdateResult.UPDATE: [update.path for update in request.update],
    }
    return [gnmi.UpdateResult(path=path, op=op) for op, paths in operations.items() for path in paths]
