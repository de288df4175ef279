"""Dark leaves: localization of the fault and the reason shown to clients."""

from __future__ import annotations

from collections.abc import Collection

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.links import Links
from blast_controller.core.lifecycle.quarantine import Quarantine
from blast_controller.core.light.fault_localizer import FAULTS, NO_LIGHT, FaultLocalizer
from blast_controller.core.light.light_tree import Leaf, LightTree
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservations import Reservations


class MissingLight:
    """Remembers what was dark, and quarantines culprits; moves nothing."""

    def __init__(
        self,
        inventory: Inventory,
        links: Links,
        quarantine: Quarantine,
        table: RequestTable,
        reservations: Reservations,
    ) -> None:
        self._inventory, self._links, self._quarantine = inventory, links, quarantine
        self._table, self._reservations = table, reservations
        self._localizer = FaultLocalizer()

    def note_lit(self, tree: LightTree, leaves: Collection[Leaf]) -> None:
        """Note that these leaves of a tree receive light."""
        self._localizer.lit(tree.root, leaves)

    def note_over(self, reservation: Reservation) -> None:
        """Note that no leaf of a lit reservation is dark any more."""
        self._reservations.note_dark(reservation, False)
        self._table.explain(*self._table.part_of(reservation), None)

    def look_at_fixed_leaves(self, reservation: Reservation) -> None:
        """Record in the status of a newly granted static tree which of its leaves are known to be dark."""
        tree = reservation.layout.tree
        if not isinstance(tree, StaticLight):
            return
        for leaf in tree.leaves:
            if not self._links.are_up([leaf.port]):
                self.explain_fixed(reservation, tree, leaf)

    def explain_fixed(self, reservation: Reservation, tree: StaticLight, leaf: Leaf) -> None:
        """Record in the status that a dark leaf cannot be moved."""
        reason = f"no light at {leaf.port.element}, and the fibers of the static tree {tree.name} are fixed"
        self._table.explain(*self._table.part_of(reservation), reason)

    def diagnose(self, tree: LightTree, outputs: frozenset[int], fault: str = NO_LIGHT) -> None:
        """Quarantine the most likely faulty elements. Quarantines by an operator stay unchanged."""
        diagnosis = self._localizer.dark(tree, outputs, fault)
        quarantined = self._inventory.quarantined
        for element in diagnosis.clear:
            if quarantined.get(element, "").startswith(FAULTS):
                self._quarantine.lift(element)
        for element, reason in diagnosis.quarantine.items():
            if element not in quarantined:
                self._quarantine.impose(element, reason)

    def explain(self, reservation: Reservation, outputs: frozenset[int], fault: str = NO_LIGHT) -> None:
        """Record in the status which granted leaves have a fault, and why they cannot be repaired."""
        tree = reservation.layout.tree
        dark = [leaf.port.element for leaf in tree.leaves if leaf.port.output in outputs] if tree else []
        blamed = [self._inventory.unusable(element) for element in dark]
        cause = "; ".join(reason for reason in blamed if reason) or "and no free splitter output to replace it"
        if dark:
            reason = f"{fault} at {', '.join(dark)}, {cause}"
            self._reservations.note_dark(reservation, True)
            self._table.explain(*self._table.part_of(reservation), reason)

    def curable(self, tree: LightTree, outputs: Collection[int]) -> list[int]:
        """Return the dark outputs whose leaf would receive light at another output."""
        dark = [leaf.port for leaf in tree.leaves if leaf.port.output in outputs]
        return [port.output for port in dark if not self._inventory.unusable(port.element)]
