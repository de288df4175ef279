"""What becomes of parts when their reservations are lit, changed, lost or gone; and how a part ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blast_controller.core.grants import make_grant
from blast_controller.core.light_watch import LightWatch
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.part_states import PartEvent
from blast_controller.core.model.requests import EventKind, MulticastRequest, Part, Request
from blast_controller.core.model.timers import Retry
from blast_controller.core.policy.admission import check_feasible, check_share, group_of, served_statically
from blast_controller.core.rollout.outcomes import (
    Changed,
    ChangeRefused,
    Dark,
    Gone,
    LightLost,
    Lit,
    NotLit,
    Outcome,
    Spoilt,
    Stuck,
)
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.state import State

MOST_FORGOTTEN = 32
"""Requests forgotten at once where the operator has lowered how many may be known."""


class Lifecycle:
    """Acts on outcomes of reservations."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.watch = LightWatch(state)
        self._outcomes: dict[type, Callable[..., None]] = {
            Lit: self._on_lit,
            NotLit: self._on_not_lit,
            Changed: self._on_changed,
            ChangeRefused: self._on_change_refused,
            LightLost: self._on_light_lost,
            Gone: self._on_gone,
            Dark: self._on_dark,
            Spoilt: self._on_spoilt,
            Stuck: self._on_stuck,
        }

    def act_on(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Let outcomes have their consequences."""
        for outcome in outcomes:
            self._outcomes[type(outcome)](outcome, now)

    # --------------------------------------------------------------------------------------------- the end

    def end_all(self, request: Request, event: PartEvent, reason: str, now: float) -> None:
        """Bring every part that has not ended to its end."""
        for part in request.parts:
            if not part.state.final:
                self.end(request, part, event, reason, now)

    def end(self, request: Request, part: Part, event: PartEvent, reason: str, now: float) -> None:
        """Bring a part to a final state; what devices hold for it is undone."""
        self._state.table.move(request, part, event)
        part.reason, part.lease_end = reason, None
        reservation = self._state.reservations.live.get(part.reservation) if part.reservation is not None else None
        if event is PartEvent.FINISHED and reservation is not None:
            self._keep_warm(reservation, request, part, now)
        if reservation is not None and reservation.state not in (ReservationState.RELEASING, ReservationState.IDLE):
            self._state.reservations.release(reservation)
            self.act_on(self._state.reservations.completed(reservation), now)
        self._state.table.publish(request, part, EventKind.ENDED, reason=reason, state=part.state)
        if request.state.final:
            self._state.table.remember(request, now)
            self._forget_surplus()

    def _forget_surplus(self) -> None:
        """Keep to the number of ended requests that may be known; what still has hardware is known in any case."""
        book, most = self._state.table, self._state.orders.settings.most_ended
        with_hardware = {reservation.request for reservation in self._state.reservations.live.values()}
        for _ in range(min(len(book.ended) - most, MOST_FORGOTTEN)):
            oldest = (key for key in book.ended.oldest_of_fullest() if key not in with_hardware)
            if (key := next(oldest, None)) is None:
                return
            book.forget(key)

    def _keep_warm(self, reservation: Reservation, request: Request, part: Part, now: float) -> None:
        """Leave the light on for a while, for whoever needs any of it."""
        if self._state.warm.keep(reservation, request.current, now):
            part.reservation = None
            self._state.quota.dark(reservation.id, now)

    def check_feasible(self, request: MulticastRequest) -> None:
        """Raise Rejected unless what is left of the fabric could serve this request if nobody held anything."""
        if served_statically(request, self._state.fabric, self._state.inventory):
            return
        loop_leaf = self._state.orders.settings.loop_leaf
        group = group_of(request, request.receivers, self._state.fabric, loop_leaf)
        check_feasible(
            group, self._state.fabric, self._state.inventory, loop_leaf, self._state.orders.settings.most_splitters
        )
        most = self._state.orders.limits(request.tenant).max_splitters
        if group is not None and most is not None:
            check_share(group, self._state.inventory, most)
        self._state.layout_planner.check_light(request, request.receivers, most)

    def _hopeless(self, request: MulticastRequest) -> str | None:
        """Why a request that was admitted can no longer be served by what is left of the fabric, or None."""
        try:
            self.check_feasible(request)
        except Rejected as refusal:
            return refusal.sentence
        return None

    # -------------------------------------------------------------------------------------------- outcomes

    def _on_light_lost(self, outcome: LightLost, now: float) -> None:
        request, part = self._state.table.part_of(outcome.reservation)
        self._state.quota.dark(outcome.reservation.id, now)
        self._state.reservations.release(outcome.reservation)
        part.reason = f"light lost: {outcome.reason}"
        part.grant = part.lease_end = None
        self._state.table.move(request, part, PartEvent.LIGHT_LOST)
        self._state.table.publish(request, part, EventKind.REVOKED, reason=part.reason)

    def _on_dark(self, outcome: Dark, now: float) -> None:
        match outcome.reservation.state:
            case ReservationState.LIT:
                self.act_on(self.watch.repair(outcome.reservation, outcome.outputs, now), now)
            case ReservationState.CHANGING:
                self.watch.diagnose(outcome.tree, outcome.outputs)
                self.watch.explain(outcome.reservation, outcome.outputs)
            case _:
                self.watch.diagnose(outcome.tree, outcome.outputs)
                places = [leaf.port.element for leaf in outcome.tree.leaves if leaf.port.output in outcome.outputs]
                self._on_not_lit(NotLit(outcome.reservation, f"no light at {', '.join(places)}"), now)

    def _on_lit(self, outcome: Lit, now: float) -> None:
        request, part = self._state.table.part_of(outcome.reservation)
        self._state.table.move(request, part, PartEvent.CONFIRMED)
        part.reason, part.failures, part.heard = None, 0, False
        self._count_light(outcome.reservation, now)
        if (tree := outcome.reservation.layout.tree) is not None:
            self._state.localizer.lit(tree.root, tree.leaves)
        part.grant = make_grant(self._state, request, part, outcome.reservation, now)
        self._state.table.lease(request, part, now + part.grant.lease)
        self._state.table.publish(request, part, EventKind.GRANTED, grant=part.grant)
        self.watch.look_at_fixed_leaves(outcome.reservation, now)

    def _count_light(self, reservation: Reservation, now: float) -> None:
        """A group within one rack uses no light."""
        if reservation.layout.tree is None:
            self._state.quota.dark(reservation.id, now)
        else:
            self._state.quota.lit(reservation.id, reservation.request[0], now)

    def _on_not_lit(self, outcome: NotLit, now: float) -> None:
        request, part = self._state.table.part_of(outcome.reservation)
        part.failures += 1
        part.reason = outcome.reason
        hopeless = self._hopeless(request.current)
        if hopeless is not None or part.failures >= self._state.orders.settings.failures_allowed:
            sentence = f"{outcome.reason}. {hopeless}" if hopeless else outcome.reason
            self.end(request, part, PartEvent.GIVEN_UP, sentence, now)
        else:
            self._state.table.move(request, part, PartEvent.FAILURE)

    def _on_changed(self, outcome: Changed, now: float) -> None:
        request, part = self._state.table.part_of(outcome.reservation)
        part.reason = None
        self._state.reservations.note_dark(outcome.reservation, False)
        self._count_light(outcome.reservation, now)
        if (tree := outcome.reservation.layout.tree) is not None and outcome.fresh:
            self._state.localizer.lit(tree.root, outcome.fresh)
        request.current = outcome.change.request
        part.receivers = outcome.change.target.receivers
        part.extra_lease += outcome.change.extra_lease
        lease_before = part.grant.lease if part.grant else 0.0
        part.grant = make_grant(self._state, request, part, outcome.reservation, now)
        # More bytes lengthen the lease as more time does; both count from the first grant.
        longer = max(0.0, part.grant.lease - lease_before)
        self._state.table.lease(request, part, (part.lease_end or now) + longer)
        self._state.table.publish(request, part, EventKind.CHANGED, grant=part.grant)

    def _on_change_refused(self, outcome: ChangeRefused, now: float) -> None:
        request, part = self._state.table.part_of(outcome.reservation)
        self._state.table.publish(request, part, EventKind.CHANGED, grant=part.grant, reason=outcome.reason)
        self.watch.explain(outcome.reservation, outcome.still_dark)

    def _on_gone(self, outcome: Gone, now: float) -> None:
        self._state.quota.dark(outcome.reservation.id, now)

    def _on_spoilt(self, outcome: Spoilt, now: float) -> None:
        self._state.warm.note_released(outcome.reservation)

    def _on_stuck(self, outcome: Stuck, now: float) -> None:
        self._state.timers.add(now + self._state.orders.settings.retry_after, Retry(outcome.reservation.id))
