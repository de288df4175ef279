"""The changes that a subscriber has not been sent yet. Pure.

Each update names one leaf (gNMI 3.5.2.3). Of a leaf that changes again before it is sent only the last value is kept,
and `duplicates` counts the others (gNMI 2.1): a backlog never exceeds the size of the databases, however slow the
subscriber.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from blast_base.json_types import JsonValue
from optical_switch.emulator.gnmi_target.paths import Depth, Notation
from optical_switch.emulator.gnmi_target.requested_path import RequestedPath
from optical_switch.emulator.gnmi_target.tables import RowChange, RowId, Rows
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi

MAX_UPDATES = 1000
"""Updates and deletes of one notification: some 150 KB, far below the 4 MiB that a gRPC client takes at once."""


class _NotifiedNode(NamedTuple):
    """A node by its path: two subscriptions of one list may select the same node."""

    notation: Notation
    origin: str
    row: RowId
    leaf: str


class Backlog:
    """The nodes that a subscriber must be sent.

    Parameters
    ----------
    requested : Sequence[RequestedPath]
        The paths of its subscription list.
    """

    def __init__(self, requested: Sequence[RequestedPath]) -> None:
        self._requested = requested
        self._deletes: dict[_NotifiedNode, gnmi.Path] = {}
        self._updates: dict[_NotifiedNode, gnmi.Update] = {}

    def add_all(self, rows: Rows) -> None:
        """Add all leaves that are selected."""
        selected = (row for row in rows if any(requested.selects(row) for requested in self._requested))
        self.add_changes([RowChange(row, None, rows[row]) for row in sorted(selected)])

    def add_changes(self, changes: Sequence[RowChange]) -> None:
        """Add the leaves that have changed."""
        for change in changes:
            for requested in self._requested:
                if requested.selects(change.row):
                    self._add(requested, change)

    def take(self, prefix: gnmi.Path, timestamp: int) -> Iterator[gnmi.Notification]:
        """Yield all nodes in notifications, deletes first, and forget them."""
        deletes, updates = iter(self._deletes.values()), iter(self._updates.values())
        self._deletes, self._updates = {}, {}
        while True:
            removed = list(islice(deletes, MAX_UPDATES))
            changed = list(islice(updates, MAX_UPDATES - len(removed)))
            if not removed and not changed:
                return
            yield gnmi.Notification(timestamp=timestamp, prefix=prefix, delete=removed, update=changed)

    def _add(self, requested: RequestedPath, change: RowChange) -> None:
        before = requested.leaves(change.row, change.before)
        after = requested.leaves(change.row, change.after)
        if change.after is None and requested.selection.depth is not Depth.LEAF:
            # gNMI 3.5.2.3: one delete for the row instead of one for each leaf.
            for name in before:
                self._updates.pop(_node(requested, change.row, name), None)
            self._delete(requested, change.row)
            return
        for name in before.keys() - after.keys():
            self._updates.pop(_node(requested, change.row, name), None)
            self._delete(requested, change.row, name)
        for name, value in after.items():
            if name not in before or before[name] != value:
                self._update(requested, change.row, name, value)

    def _delete(self, requested: RequestedPath, row: RowId, leaf: str = "") -> None:
        self._deletes[_node(requested, row, leaf)] = requested.node_path(row, leaf)

    def _update(self, requested: RequestedPath, row: RowId, leaf: str, value: JsonValue) -> None:
        node = _node(requested, row, leaf)
        replaced = self._updates.get(node)
        self._updates[node] = gnmi.Update(
            path=requested.node_path(row, leaf),
            val=requested.renderer.typed(value),
            duplicates=0 if replaced is None else replaced.duplicates + 1,
        )


def _node(requested: RequestedPath, row: RowId, leaf: str) -> _NotifiedNode:
    return _NotifiedNode(requested.selection.notation, requested.path.origin, row, leaf)
