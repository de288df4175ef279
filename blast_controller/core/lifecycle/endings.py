"""End of grants: final, paused, or because devices lost the light tree."""

from __future__ import annotations

from blast_controller.core.model.part_states import PartEvent
from blast_controller.core.model.requests import EventKind, Part, Request
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.quota import Quota
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.outcomes import LightLost, Released, WarmTreeFailed
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations

MAX_FORGOTTEN = 32
"""Requests forgotten at once where the operator has lowered how many may be known."""


class Endings:
    """Ends grants, and releases or keeps what devices hold for them."""

    def __init__(
        self, table: RequestTable, reservations: Reservations, warm: WarmTrees, quota: Quota, orders: StandingOrders
    ) -> None:
        self._table, self._reservations = table, reservations
        self._warm, self._quota, self._orders = warm, quota, orders

    def end_all(self, request: Request, event: PartEvent, reason: str, now: float) -> None:
        """Bring every part that has not ended to its end."""
        for part in request.parts:
            if not part.state.final:
                self.end(request, part, event, reason, now)

    def end(self, request: Request, part: Part, event: PartEvent, reason: str, now: float) -> None:
        """Move a part to a final state and release what devices hold for it."""
        self._table.move(request, part, event)
        part.reason, part.lease_end = reason, None
        reservation = self._reservations.live.get(part.reservation or 0)
        if reservation is not None:
            if event is PartEvent.FINISHED and self._warm.keep(reservation, request.current, now):
                # The tree stays warm until another group needs one of its pieces.
                part.reservation = None
                self._quota.dark(reservation.id, now)
            if reservation.state not in (ReservationState.RELEASING, ReservationState.IDLE):
                self._reservations.release(reservation)
                if self._reservations.completed(reservation):
                    # Without devices that have something to undo, it is gone at once.
                    self._quota.dark(reservation.id, now)
        self._table.publish(request, part, EventKind.ENDED, reason=reason, state=part.state)
        if request.state.final:
            self._table.remember(request, now)
            self._forget_surplus()

    def _forget_surplus(self) -> None:
        """Forget ended requests beyond the limit, unless they still hold hardware."""
        surplus = len(self._table.ended) - self._orders.settings.max_ended
        if surplus <= 0:
            return
        for _ in range(min(surplus, MAX_FORGOTTEN)):
            has_hardware = self._reservations.has_hardware
            oldest = (key for key in self._table.ended.oldest_of_fullest() if not has_hardware(key))
            if (key := next(oldest, None)) is None:
                return
            self._table.forget(key)

    def pause(self, request: Request, part: Part, now: float) -> None:
        """Pause a part whose lease is over; parts with precedence may use its tree."""
        reservation = self._reservations.live[part.reservation or 0]
        self._quota.dark(reservation.id, now)
        self._warm.keep_idle(reservation, request.current, now)
        part.grant = part.lease_end = part.reservation = None
        part.reported = False
        self._table.move(request, part, PartEvent.PAUSED)
        reason = (
            f"The lease expired and other requests have precedence; the transfer will resume at byte {part.reached}."
        )
        self._table.publish(request, part, EventKind.PAUSED, reason=reason)

    def on_light_lost(self, outcome: LightLost, now: float) -> None:
        """Return a part to pending after the loss of its light tree."""
        request, part = self._table.part_of(outcome.reservation)
        self._quota.dark(outcome.reservation.id, now)
        self._reservations.release(outcome.reservation)
        part.reason = f"light lost: {outcome.reason}"
        part.grant = part.lease_end = None
        self._table.move(request, part, PartEvent.LIGHT_LOST)
        self._table.publish(request, part, EventKind.REVOKED, reason=part.reason)

    def on_released(self, outcome: Released, now: float) -> None:
        """End the lit time of a reservation: devices have removed everything."""
        self._quota.dark(outcome.reservation.id, now)

    def on_spoilt(self, outcome: WarmTreeFailed, now: float) -> None:
        """Remove a warm tree with a fault from the index."""
        self._warm.note_released(outcome.reservation)
