"""What a world's journal says: its rows as text, and the reservations, quarantines and probes that they stand for."""

from __future__ import annotations

import json

from blast_controller.core.journal.bodies import load_reservation
from blast_controller.core.model.fabric import CrossConnect, Fabric
from blast_controller.core.model.records import Record
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.store.memory import MemoryStore
from tests.support.core import remembered


class Journal:
    """The journal of a controller on this fabric, as it is at the moment of asking."""

    def __init__(self, store: MemoryStore, fabric: Fabric) -> None:
        self._store = store
        self._fabric = fabric

    @property
    def content(self) -> dict[tuple[str, str], str]:
        """The text of every row, by kind and key."""
        return self._store._state

    def rows(self, kind: str) -> dict[str, str]:
        """The rows of one kind, as text."""
        return {key: text for (found, key), text in self.content.items() if found == kind}

    def records(self) -> list[Record]:
        """All of it, as a controller would be given it."""
        return [Record(kind, key, json.loads(text)) for (kind, key), text in self.content.items()]

    def reservations(self) -> list[Reservation]:
        """The live reservations."""
        return [_reservation(self._fabric, text) for text in self.rows("reservation").values()]

    def quarantined(self) -> dict[str, str]:
        """The elements that are out of use, and why."""
        return {key: json.loads(text)["reason"] for key, text in self.rows("element").items()}

    def probe_circuits(self) -> set[CrossConnect]:
        """What a check of the fibers may have made."""
        return self._circuits("probe")

    def late_circuits(self) -> set[CrossConnect]:
        """What may still come late to a switch, and is then taken away."""
        return self._circuits("late")

    def unreserved_circuits(self) -> set[CrossConnect]:
        """What is ours and belongs to no reservation."""
        return self.probe_circuits() | self.late_circuits()

    def circuits(self) -> set[CrossConnect]:
        """All that may be ours on switches."""
        return {c for r in self.reservations() for x in r.layouts for c in x.circuits} | self.unreserved_circuits()

    def _circuits(self, kind: str) -> set[CrossConnect]:
        rows = self.rows(kind)
        return {CrossConnect(switch, *pair) for switch, text in rows.items() for pair in json.loads(text)["circuits"]}


@remembered
def _reservation(fabric: Fabric, text: str) -> Reservation:
    return load_reservation(json.loads(text), fabric)
