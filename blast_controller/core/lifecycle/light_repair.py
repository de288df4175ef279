"""The repair of dark branches while the others stay lit."""

from __future__ import annotations

from blast_controller.core.lifecycle.appointments import Appointments
from blast_controller.core.lifecycle.missing_light import MissingLight
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.outcomes import Dark, NotLit, Outcome
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations


class LightRepair:
    """Moves dark leaves to open legs; what comes of it are outcomes like those of any step."""

    def __init__(
        self,
        missing: MissingLight,
        layouts: LayoutPlanner,
        table: RequestTable,
        reservations: Reservations,
        appointments: Appointments,
    ) -> None:
        self._missing, self._layouts = missing, layouts
        self._table, self._reservations, self._appointments = table, reservations, appointments

    def on_dark(self, outcome: Dark, now: float) -> list[Outcome]:
        """A step has left leaves dark."""
        if outcome.reservation.state is ReservationState.LIT:
            return self.repair(outcome.reservation, outcome.outputs, now)
        self._missing.diagnose(outcome.tree, outcome.outputs)
        if outcome.reservation.state is ReservationState.CHANGING:
            self._missing.explain(outcome.reservation, outcome.outputs)
            return []
        places = [leaf.port.element for leaf in outcome.tree.leaves if leaf.port.output in outcome.outputs]
        return [NotLit(outcome.reservation, f"no light at {', '.join(places)}")]

    def repair(self, reservation: Reservation, outputs: frozenset[int], now: float) -> list[Outcome]:
        """Move dark leaves of a lit tree to open legs; the others stay as they are."""
        tree = reservation.layout.tree
        if tree is None:
            return []
        self._missing.diagnose(tree, outputs)
        curable = self._missing.curable(tree, outputs)
        mended = self._layouts.mended(tree, curable) if curable else None
        if mended is None:
            self._missing.explain(reservation, outputs)
            return []
        request, part = self._table.part_of(reservation)
        target = self._layouts.layout(request.current, part.receivers, mended, reservation.group_address)
        outcomes = self._reservations.change(reservation, Change(target, request.current, 0.0))
        self._appointments.links(reservation, now)
        return outcomes
