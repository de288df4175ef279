"""Handlers of expired deadlines: leases, pending timeouts, grace periods, retention, retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.lifecycle import Lifecycle
from blast_controller.core.lifecycle.light_watch import LightWatch
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.timers import (
    FlapToleranceExpired,
    GracePeriodExpired,
    LeaseExpired,
    LinkTimedOut,
    PendingTimeoutExpired,
    RetentionExpired,
    Retry,
    Timers,
)
from blast_controller.core.placing.part_views import PartViews
from blast_controller.core.requests.request_table import RequestTable, is_ungranted
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations

MAX_AT_ONCE = 16
"""Deadlines handled by one event. If thousands expire together, later ticks take the others, so that requests are
answered in between."""

Handlers = Mapping[type, Callable[..., float | None]]
"""The handler of each kind of deadline. It returns the time of the next check, or None."""


class Deadlines:
    """Handles deadlines that are due; each checks whether it still holds."""

    def __init__(self, timers: Timers, *handlers: Handlers) -> None:
        self._timers = timers
        self._handlers = {kind: handler for some in handlers for kind, handler in some.items()}

    def handle_due(self, now: float) -> None:
        """Handle the earliest of what is due; while there is more, the next deadline lies in the past."""
        for deadline in self._timers.due(now, MAX_AT_ONCE):
            again = self._handlers[type(deadline)](deadline, now)
            if again is not None:
                self._timers.keep(again, deadline)


class RequestDeadlines:
    """Those of requests and their parts."""

    def __init__(
        self,
        table: RequestTable,
        reservations: Reservations,
        views: PartViews,
        endings: Endings,
        orders: StandingOrders,
    ) -> None:
        self._table, self._reservations, self._views = table, reservations, views
        self._endings, self._orders = endings, orders
        self.handlers: Handlers = {
            LeaseExpired: self._on_lease_end,
            PendingTimeoutExpired: self._on_timeout_end,
            GracePeriodExpired: self._on_grace_end,
            RetentionExpired: self._on_memory_end,
        }

    def _on_lease_end(self, deadline: LeaseExpired, now: float) -> float | None:
        request = self._table.requests.get(deadline.request)
        part = request.parts[deadline.part] if request is not None else None
        if request is None or part is None or part.state is not PartState.ACTIVE or part.lease_end is None:
            return None
        if part.lease_end > now:
            return part.lease_end
        if request.current.may_pause and part.reported and part.reached < request.current.bytes:
            # A request that may pause and reports progress continues, now or later.
            self._views.end_lease(request, part)
        else:
            reason = "The lease expired; extend a lease before it ends to keep the light tree."
            self._endings.end(request, part, PartEvent.LEASE_END, reason, now)
        return None

    def _on_timeout_end(self, deadline: PendingTimeoutExpired, now: float) -> None:
        request = self._table.requests.get(deadline.request)
        if request is not None and is_ungranted(request):
            reason = "The pending timeout expired before resources became free."
            self._endings.end_all(request, PartEvent.PENDING_TIMEOUT_OVER, reason, now)

    def _on_grace_end(self, deadline: GracePeriodExpired, now: float) -> float | None:
        request = self._table.requests.get(deadline.request)
        if request is None or request.vanished_at is None or not is_ungranted(request):
            return None
        due = request.vanished_at + self._orders.settings.orphan_grace
        if due <= now:
            self._endings.end_all(
                request,
                PartEvent.WITHDRAWN,
                "The client disconnected before the grant and did not reconnect in time.",
                now,
            )
        return due if due > now else None

    def _on_memory_end(self, deadline: RetentionExpired, now: float) -> float | None:
        request = self._table.requests.get(deadline.request)
        if request is None or request.ended_at is None:
            return None
        serving = (r for r in self._reservations.live.values() if r.state is not ReservationState.IDLE)
        if any(reservation.request == deadline.request for reservation in serving):
            return now + self._orders.settings.remember_ended
        due = request.ended_at + self._orders.settings.remember_ended
        if due <= now:
            self._table.forget(deadline.request)
        return due if due > now else None


class LightDeadlines:
    """Those of steps on devices, and of leaves without link."""

    def __init__(self, reservations: Reservations, watch: LightWatch, lifecycle: Lifecycle) -> None:
        self._reservations, self._watch, self._lifecycle = reservations, watch, lifecycle
        self.handlers: Handlers = {
            Retry: self._on_retry,
            LinkTimedOut: self._on_link_due,
            FlapToleranceExpired: self._on_leaf_down,
        }

    def _on_retry(self, deadline: Retry, now: float) -> None:
        reservation = self._reservations.live.get(deadline.reservation)
        if reservation is not None:
            self._lifecycle.act_on(self._reservations.retry(reservation), now)

    def _on_link_due(self, deadline: LinkTimedOut, now: float) -> None:
        self._lifecycle.act_on(self._reservations.links_overdue(deadline.reservation, deadline.step), now)

    def _on_leaf_down(self, deadline: FlapToleranceExpired, now: float) -> None:
        self._lifecycle.act_on(self._watch.on_leaf_down(deadline, now), now)
