"""From moments to the rows that have changed, each encoded once."""

from __future__ import annotations

import json
from collections.abc import Iterator

from blast_controller.core.model.identifiers import Device
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.history import rows
from blast_controller.history.moment import Moment

Rows = dict[str, str]
"""JSON by name."""
Difference = dict[str, str | None]
"""Added or changed rows, and None for removed ones."""

# With these options json.dumps would create an encoder for each row.
_encoded = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def all_rows(snapshot: Snapshot) -> Rows:
    """Return a whole snapshot."""
    return {name: _encoded(value) for name, value in _values(snapshot)}


def _values(snapshot: Snapshot) -> Iterator[tuple[str, rows.Value]]:
    yield rows.FABRIC, rows.fabric_value(snapshot.fabric)
    yield from ((rows.request_name(key), rows.request_value(found)) for key, found in snapshot.requests.by_name.items())
    yield from ((rows.tree_name(number), rows.tree_value(found)) for number, found in snapshot.trees.items())
    yield from ((rows.unit_name(unit), rows.unit_value(found)) for unit, found in snapshot.standings.items())
    yield from ((rows.away_name(device), rows.away_value(reason)) for device, reason in snapshot.away.items())
    if snapshot.warm is not None:
        yield rows.WARM, rows.warm_value(snapshot.warm)


class Encoder:
    """For one reader that sees every moment, in order."""

    def __init__(self) -> None:
        self._known: Rows = {}
        self.owners: dict[str, str] = {}
        """The tenant of a row, by its name, until its removal was sent to all; other rows are public."""
        self._removed: list[str] = []

    @property
    def rows(self) -> Rows:
        """Return all rows as of the latest moment; a reader must not change them."""
        return self._known

    def encode(self, moment: Moment) -> Difference:
        """Return the rows that differ from the previous moment."""
        for name in self._removed:
            self.owners.pop(name, None)
        found = self._found(moment)
        difference = {name: row for name, row in found.items() if row != self._known.get(name)}
        for name, row in difference.items():
            if row is None:
                del self._known[name]
            else:
                self._known[name] = row
        self._removed = [name for name, row in difference.items() if row is None]
        return difference

    def _found(self, moment: Moment) -> Difference:
        if moment.changes.everything:
            self.owners.update(_owners(moment.snapshot))
            return {**dict.fromkeys(self._known), **all_rows(moment.snapshot)}
        return dict(self._named(moment))

    def _named(self, moment: Moment) -> Iterator[tuple[str, str | None]]:
        snapshot, changes = moment.snapshot, moment.changes
        for key in changes.requests:
            name, request = rows.request_name(key), snapshot.requests.by_name.get(key)
            if request is not None:
                self.owners[name] = key[0]
            yield name, None if request is None else _encoded(rows.request_value(request))
        for number in changes.trees:
            name, tree = rows.tree_name(number), snapshot.trees.get(number)
            if tree is not None:
                self.owners[name] = tree.request[0]
            yield name, None if tree is None else _encoded(rows.tree_value(tree))
        for unit in changes.units:
            standings = snapshot.standings.get(unit)
            yield rows.unit_name(unit), None if standings is None else _encoded(rows.unit_value(standings))
        if changes.away:
            for device in _devices(snapshot):
                reason = snapshot.away.get(device)
                yield rows.away_name(device), None if reason is None else _encoded(rows.away_value(reason))
        if changes.warm:
            yield rows.WARM, None if snapshot.warm is None else _encoded(rows.warm_value(snapshot.warm))


def _owners(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    yield from ((rows.request_name(key), key[0]) for key in snapshot.requests.by_name)
    yield from ((rows.tree_name(number), tree.request[0]) for number, tree in snapshot.trees.items())


def _devices(snapshot: Snapshot) -> Iterator[Device]:
    yield from snapshot.fabric.switches
    yield from {rack.datapath for rack in snapshot.fabric.racks.values()}
