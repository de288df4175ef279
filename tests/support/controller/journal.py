"""The contents of a world's journal: its rows as text, and its reservations, quarantines and probes."""

from __future__ import annotations

import json

from blast_controller.core.journal.bodies import load_reservation
from blast_controller.core.model.fabric import CrossConnect, Fabric
from blast_controller.core.model.records import Record
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.store.memory import MemoryStore
from tests.support.controller.core import remembered


class Journal:
    """The journal of a controller on this fabric, as it is at the moment of asking."""

    def __init__(self, store: MemoryStore, fabric: Fabric) -> None:
        self._store = store
        self._fabric = fabric

    @property
    def content(self) -> dict[tuple[str, str], str]:
        """Return the text of every row, by kind and key."""
        return self._store._state

    def rows(self, kind: str) -> dict[str, str]:
        """Return the rows of one kind, as text."""
        return {key: text for (found, key), text in self.content.items() if found == kind}

    def records(self) -> list[Record]:
        """Return all records, as a controller loads them."""
        return [Record(kind, key, json.loads(text)) for (kind, key), text in self.content.items()]

    def reservations(self) -> list[Reservation]:
        """Return the live reservations."""
        return [_reservation(self._fabric, text) for text in self.rows("reservation").values()]

    def quarantined(self) -> dict[str, str]:
        """Return the quarantined elements, with the reasons."""
        return {key: json.loads(text)["reason"] for key, text in self.rows("element").items()}

    def probe_circuits(self) -> set[CrossConnect]:
        """Return the circuits that a check of the fibers may have made."""
        return self._circuits("probe")

    def late_circuits(self) -> set[CrossConnect]:
        """Return the circuits that may still arrive late at a switch, which are then removed."""
        return self._circuits("late")

    def unreserved_circuits(self) -> set[CrossConnect]:
        """Return Blast's circuits without a reservation."""
        return self.probe_circuits() | self.late_circuits()

    def circuits(self) -> set[CrossConnect]:
        """Return all circuits on switches that may be Blast's."""
        return {c for r in self.reservations() for x in r.layouts for c in x.circuits} | self.unreserved_circuits()

    def _circuits(self, kind: str) -> set[CrossConnect]:
        rows = self.rows(kind)
        return {CrossConnect(switch, *pair) for switch, text in rows.items() for pair in json.loads(text)["circuits"]}


@remembered
def _reservation(fabric: Fabric, text: str) -> Reservation:
    return load_reservation(json.loads(text), fabric)
