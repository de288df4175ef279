"""Quarantine of elements until an operator or a diagnosis releases them."""

from __future__ import annotations

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.model.identifiers import ElementId, is_static
from blast_controller.core.model.records import Record
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.outbox import Outbox


class Quarantine:
    """Takes elements out of use and brings them back, on disk too."""

    def __init__(
        self, inventory: Inventory, warm: WarmTrees, outbox: Outbox, agenda: Agenda, table: RequestTable
    ) -> None:
        self._inventory, self._warm, self._outbox = inventory, warm, outbox
        self._agenda, self._table = agenda, table

    def impose(self, element: ElementId, reason: str) -> None:
        """Take an element out of use for this reason."""
        for number in self._inventory.keepers_of([element]):
            self._warm.give_up(number)
        self._inventory.quarantine(element, reason)
        self._outbox.record(Record("element", element, {"reason": reason}, note="quarantined"))

    def lift(self, element: ElementId) -> None:
        """Bring an element back."""
        if self._inventory.lift_quarantine(element):
            self._outbox.record(Record("element", element, None, note="released"))
            if is_static(element):
                # The policy is notified of released ports and splitters but does not know static trees.
                self._agenda.look_again(key for key, _ in self._table.pending)
