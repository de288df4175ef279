"""Light for parts: reservations are opened, changed, or used again."""

from __future__ import annotations

from blast_controller.core.lifecycle.lifecycle import Lifecycle
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.part_states import PartEvent
from blast_controller.core.model.requests import Part, Request
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.outcomes import Lit
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservations import Reservations


class Lighting:
    """Opens, changes and reuses reservations; evicts warm trees as needed."""

    def __init__(
        self,
        table: RequestTable,
        reservations: Reservations,
        warm: WarmTrees,
        layouts: LayoutPlanner,
        lifecycle: Lifecycle,
    ) -> None:
        self._table, self._reservations, self._warm = table, reservations, warm
        self._layouts, self._lifecycle = layouts, lifecycle

    def light(self, request: Request, part: Part, tree: LightTree | None, now: float) -> bool:
        """Let a part have a tree, or none within its rack; return false if no group address is free."""
        address = self._reservations.addresses.take()
        if address is None:
            return False
        layout = self._layouts.layout(request.current, part.receivers, tree, address)
        if tree is not None and not isinstance(tree, StaticLight):
            self._warm.note_cold_start(request.current, part, now)
        lenders = self._warm.hand_over(layout.elements)
        reservation = self._reservations.open(request.current.id, part.index, layout, address, lenders)
        self._picked(request, part, reservation)
        self._lifecycle.begun(reservation, self._reservations.completed(reservation), now)
        return True

    def light_again(self, request: Request, part: Part, reservation: Reservation, now: float) -> bool:
        """Let a part have a tree that is still lit."""
        self._warm.light_again(reservation, request.current, part, now)
        self._picked(request, part, reservation)
        self._lifecycle.act_on([Lit(reservation)], now)
        return True

    def _picked(self, request: Request, part: Part, reservation: Reservation) -> None:
        part.reservation = reservation.id
        self._table.move(request, part, PartEvent.PICKED)

    def change(self, request: Request, reservation: Reservation, change: Change, now: float) -> None:
        """Change the light tree of an active part."""
        lenders = self._warm.hand_over(change.target.elements)
        outcomes = self._reservations.change(reservation, change, lenders)
        self._table.touch(request, "changing")
        self._lifecycle.begun(reservation, outcomes, now)
