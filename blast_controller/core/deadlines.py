"""What happens when time is over: leases, patience, grace, memory, retries."""

from __future__ import annotations

from collections.abc import Callable

from blast_controller.core.fibre_check import FibreCheck
from blast_controller.core.lifecycle import Lifecycle
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.timers import (
    AuditDue,
    ClearAgain,
    Cool,
    GraceEnd,
    LeafDown,
    LeaseEnd,
    LinkDue,
    MemoryEnd,
    OptimiserLate,
    PatienceEnd,
    ProbeDue,
    QuotaLook,
    Retry,
)
from blast_controller.core.requests.request_table import is_ungranted
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.state import State

MOST_AT_ONCE = 16
"""Deadlines handled by one event; of thousands that come together the next ticks take the others, so that whoever asks
meanwhile is answered in between."""


class Deadlines:
    """Handles deadlines that are due; each checks whether it still holds."""

    def __init__(self, state: State, lifecycle: Lifecycle, fibres: FibreCheck) -> None:
        self._state = state
        self._lifecycle = lifecycle
        self._handlers: dict[type, Callable[..., None]] = {
            LeaseEnd: self._on_lease_end,
            PatienceEnd: self._on_patience_end,
            GraceEnd: self._on_grace_end,
            MemoryEnd: self._on_memory_end,
            Retry: self._on_retry,
            AuditDue: self._on_audit_due,
            QuotaLook: self._on_quota_look,
            LinkDue: self._on_link_due,
            LeafDown: self._on_leaf_down,
            ProbeDue: fibres.on_due,
            ClearAgain: fibres.on_clear_again,
            Cool: self._on_cool,
            OptimiserLate: self._on_optimiser_late,
        }

    def handle_due(self, now: float) -> None:
        """Handle the earliest of what is due; while there is more, the next deadline lies in the past."""
        for deadline in self._state.timers.due(now, MOST_AT_ONCE):
            self._handlers[type(deadline)](deadline, now)

    def _on_lease_end(self, deadline: LeaseEnd, now: float) -> None:
        request = self._state.table.requests.get(deadline.request)
        if request is None:
            return
        part = request.parts[deadline.part]
        if part.state is not PartState.ACTIVE or part.lease_end is None:
            return
        if part.lease_end > now:
            self._state.timers.keep(part.lease_end, deadline)
            return
        if request.current.may_pause and part.heard and part.reached < request.current.bytes:
            # Who pauses and has been heard of goes on, now or later.
            view = self._state.part_view(request, part)
            self._state.next_decision.end_leases([view])
        else:
            self._lifecycle.end(
                request, part, PartEvent.LEASE_END, "The lease is over; extend it in time to keep the light.", now
            )

    def _on_patience_end(self, deadline: PatienceEnd, now: float) -> None:
        request = self._state.table.requests.get(deadline.request)
        if request is not None and is_ungranted(request):
            self._lifecycle.end_all(
                request, PartEvent.PATIENCE_OVER, "No light became free within the patience given.", now
            )

    def _on_grace_end(self, deadline: GraceEnd, now: float) -> None:
        request = self._state.table.requests.get(deadline.request)
        if request is None or request.vanished_at is None or not is_ungranted(request):
            return
        due = request.vanished_at + self._state.orders.settings.orphan_grace
        if due > now:
            self._state.timers.keep(due, deadline)
        else:
            self._lifecycle.end_all(request, PartEvent.WITHDRAWN, "The client vanished before the grant.", now)

    def _on_memory_end(self, deadline: MemoryEnd, now: float) -> None:
        request = self._state.table.requests.get(deadline.request)
        if request is None or request.ended_at is None:
            return
        serving = (r for r in self._state.reservations.live.values() if r.state is not ReservationState.IDLE)
        if any(reservation.request == deadline.request for reservation in serving):
            self._state.timers.keep(now + self._state.orders.settings.remember_ended, deadline)
        elif (due := request.ended_at + self._state.orders.settings.remember_ended) > now:
            self._state.timers.keep(due, deadline)
        else:
            self._state.table.forget(deadline.request)

    def _on_retry(self, deadline: Retry, now: float) -> None:
        reservation = self._state.reservations.live.get(deadline.reservation)
        if reservation is not None:
            self._lifecycle.act_on(self._state.reservations.retry(reservation), now)

    def _on_audit_due(self, deadline: AuditDue, now: float) -> None:
        if self._state.appointments.is_kept(deadline):
            self._state.appointments.audit(self._state.orders.settings.reconcile_every, now)
            if not self._state.auditor.busy:
                self._state.auditor.begin(dry_run=False)

    def _on_quota_look(self, deadline: QuotaLook, now: float) -> None:
        self._state.appointments.quota_looked()

    def _on_optimiser_late(self, deadline: OptimiserLate, now: float) -> None:
        """The decision that follows every tick looks at the time by itself."""

    def _on_cool(self, deadline: Cool, now: float) -> None:
        self._state.warm.cool(deadline)

    def _on_link_due(self, deadline: LinkDue, now: float) -> None:
        self._lifecycle.act_on(self._state.reservations.links_overdue(deadline.reservation, deadline.step), now)

    def _on_leaf_down(self, deadline: LeafDown, now: float) -> None:
        self._lifecycle.act_on(self._lifecycle.watch.on_leaf_down(deadline, now), now)
