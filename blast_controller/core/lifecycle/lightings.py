"""Parts whose reservations are lit or changed, and those that could not be lit."""

from __future__ import annotations

from blast_controller.core.lifecycle.admission import Admission
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.grants import Grants
from blast_controller.core.lifecycle.missing_light import MissingLight
from blast_controller.core.model.part_states import PartEvent
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.quota import Quota
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.outcomes import Changed, ChangeRefused, Lit, NotLit
from blast_controller.core.rollout.reservation import Reservation


class Lightings:
    """Takes note of light that is there as it was asked for."""

    def __init__(self, table: RequestTable, grants: Grants, quota: Quota, missing: MissingLight) -> None:
        self._table, self._grants, self._quota, self._missing = table, grants, quota, missing

    def on_lit(self, outcome: Lit, now: float) -> None:
        """A part may send."""
        request, part = self._table.part_of(outcome.reservation)
        self._table.move(request, part, PartEvent.CONFIRMED)
        part.reason, part.failures = None, 0
        self._count_light(outcome.reservation, now)
        if (tree := outcome.reservation.layout.tree) is not None:
            self._missing.note_lit(tree, tree.leaves)
        self._grants.give(request, part, now)
        self._missing.look_at_fixed_leaves(outcome.reservation)

    def _count_light(self, reservation: Reservation, now: float) -> None:
        """A group within one rack uses no light."""
        if reservation.layout.tree is None:
            self._quota.dark(reservation.id, now)
        else:
            self._quota.lit(reservation.id, reservation.request[0], now)

    def on_changed(self, outcome: Changed, now: float) -> None:
        """A part has what it was extended to, or its dark leaves are lit."""
        request, part = self._table.part_of(outcome.reservation)
        self._missing.note_over(outcome.reservation)
        self._count_light(outcome.reservation, now)
        if (tree := outcome.reservation.layout.tree) is not None and outcome.fresh:
            self._missing.note_lit(tree, outcome.fresh)
        request.current = outcome.change.request
        part.receivers = outcome.change.target.receivers
        part.extra_lease += outcome.change.extra_lease
        self._grants.change(request, part, now)

    def on_change_refused(self, outcome: ChangeRefused, now: float) -> None:
        """A part has what it had before."""
        request, part = self._table.part_of(outcome.reservation)
        self._table.publish(request, part, EventKind.CHANGED, grant=part.grant, reason=outcome.reason)
        self._missing.explain(outcome.reservation, outcome.still_dark)


class FailedLightings:
    """Lets parts that could not be lit try again, but not for ever."""

    def __init__(self, table: RequestTable, orders: StandingOrders, admission: Admission, endings: Endings) -> None:
        self._table, self._orders, self._admission, self._endings = table, orders, admission, endings

    def on_not_lit(self, outcome: NotLit, now: float) -> None:
        """A part waits again, or is given up."""
        request, part = self._table.part_of(outcome.reservation)
        part.failures += 1
        part.reason = outcome.reason
        hopeless = self._admission.hopeless(request.current)
        if hopeless is not None or part.failures >= self._orders.settings.failures_allowed:
            sentence = f"{outcome.reason}. {hopeless}" if hopeless else outcome.reason
            self._endings.end(request, part, PartEvent.GIVEN_UP, sentence, now)
        else:
            self._table.move(request, part, PartEvent.FAILURE)
