"""What applications ask for: submit, extend, finish, withdraw, vanish. A refusal changes nothing."""

from __future__ import annotations

from blast_controller.core.lifecycle import Lifecycle
from blast_controller.core.light.layout import Layout
from blast_controller.core.model.errors import KeyReused, Rejected, RequestEnded
from blast_controller.core.model.events import (
    ClientsVanished,
    ExtensionAsked,
    FinishAsked,
    ProgressTold,
    RequestSubmitted,
    WithdrawAsked,
)
from blast_controller.core.model.identifiers import is_splitter
from blast_controller.core.model.lease_terms import check_longer, check_terms
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.requests import EventKind, MulticastRequest, Part, Request
from blast_controller.core.policy.admission import check_extension, check_request
from blast_controller.core.requests.request_table import is_ungranted
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.state import State


class Applications:
    """Handles applications' events."""

    def __init__(self, state: State, lifecycle: Lifecycle) -> None:
        self._state = state
        self._lifecycle = lifecycle

    def on_submitted(self, event: RequestSubmitted, now: float) -> None:
        """A request comes, or comes again. Raises Rejected, KeyReused."""
        wanted = event.request
        known = self._state.table.requests.get(wanted.id)
        if known is not None:
            if known.content != wanted:
                raise KeyReused(wanted.key)
            known.vanished_at = None
            if known.attached and not event.attached:
                # Somebody has asked for it to stay, whoever else waits for it on a connection.
                known.attached = False
                self._state.table.touch(known, "stays")
            return
        self._admit(wanted)
        self._state.table.add(wanted, event.attached, now)

    def _admit(self, request: MulticastRequest) -> None:
        if self._state.orders.draining:
            raise Rejected("draining", "The controller is being drained and admits nothing new; try again later.")
        if len(self._state.table.requests) >= self._state.orders.settings.most_requests:
            raise Rejected("too_many_requests", "The controller holds as many requests as it may; try again later.")
        most = self._state.orders.settings.pending_limit(request.tenant)
        if self._state.table.pending_of(request.tenant) >= most:
            raise Rejected("too_many_pending", f"The tenant {request.tenant} already has {most} requests waiting.")
        check_request(request, self._state.fabric)
        check_terms(request, self._state.fabric, self._state.orders.settings)
        self._lifecycle.check_feasible(request)

    def on_extension(self, event: ExtensionAsked, now: float) -> None:
        """A request is to be changed. Raises Rejected, RequestEnded, UnknownRequest."""
        request = self._state.table.get_unended(event.request)
        if len(request.parts) > 1:
            raise Rejected("several_parts", "The request is served in several parts, which cannot be changed.")
        (part,) = request.parts
        wanted = check_extension(request.current, event.extension, self._state.fabric)
        check_terms(wanted, self._state.fabric, self._state.orders.settings)
        check_longer(wanted, part, event.extension.add_seconds, self._state.fabric, self._state.orders.settings)
        if part.state is PartState.PENDING:
            self._lifecycle.check_feasible(wanted)
            request.current, part.receivers = wanted, wanted.receivers
            part.extra_lease += event.extension.add_seconds
            self._state.table.publish(request, part, EventKind.CHANGED)
            return
        reservation = self._lit_reservation(part)
        target = self._state.layout_planner.extended(reservation.layout, wanted, reservation.group_address)
        self._check_splitters(reservation, target)
        if target.tree is not None and reservation.layout.tree is None:
            self._check_light(request.current.tenant, now)
        lenders = self._state.warm.hand_over(target.elements)
        change = Change(target, wanted, event.extension.add_seconds)
        outcomes = self._state.reservations.change(reservation, change, lenders)
        self._state.table.touch(request, "changing")
        self._lifecycle.watch.await_links(reservation, now)
        self._lifecycle.act_on(outcomes, now)

    def _check_light(self, tenant: str, now: float) -> None:
        if self._state.quota.exhausted(tenant, now):
            raise Rejected("light_used_up", f"The tenant {tenant} has used up its light for this hour.")

    def _check_splitters(self, reservation: Reservation, target: Layout) -> None:
        tenant = reservation.request[0]
        most = self._state.orders.limits(tenant).max_splitters
        more = sum(is_splitter(element) for element in target.elements - reservation.elements)
        if more and most is not None and self._state.splitter_limits.held(tenant) + more > most:
            raise Rejected("too_many_splitters", f"The tenant {tenant} may hold {most} splitters at a time, not more.")

    def _lit_reservation(self, part: Part) -> Reservation:
        reservation = self._state.reservations.live[part.reservation] if part.reservation is not None else None
        if reservation is None or reservation.busy:
            raise Rejected(
                "busy", "The light tree is being set up or changed at this moment; ask again when it is done."
            )
        return reservation

    def on_progress(self, event: ProgressTold, now: float) -> None:
        """A sender says how far it is. Raises Rejected, RequestEnded, UnknownRequest."""
        request = self._state.table.get_unended(event.request)
        part = _part_of(request, event.part)
        if part.state.final:
            raise RequestEnded(part.state.value, part.reason or "")
        if not part.reached <= event.reached <= request.current.bytes:
            raise Rejected(
                "bad_extension",
                f"The transfer has reached byte {part.reached} of {request.current.bytes}; {event.reached} cannot be.",
            )
        part.reached, part.heard = event.reached, True
        self._state.table.touch(request, "progress")

    def on_finish(self, event: FinishAsked, now: float) -> None:
        """A part is over. Raises Rejected, RequestEnded, UnknownRequest."""
        request = self._state.table.get(event.request)
        part = _part_of(request, event.part)
        if part.state is PartState.DONE:
            return
        if part.state.final:
            raise RequestEnded(part.state.value, part.reason or "")
        if part.state is not PartState.ACTIVE:
            raise Rejected("not_active", f"Part {event.part} is {part.state.value}: there is nothing to finish.")
        part.report = event.report.about(part.receivers) if event.report is not None else None
        self._lifecycle.end(request, part, PartEvent.FINISHED, "The sender has finished.", now)

    def on_withdraw(self, event: WithdrawAsked, now: float) -> None:
        """A request is given up. Raises RequestEnded, UnknownRequest."""
        if self._state.table.get(event.request).state is PartState.WITHDRAWN:
            return
        request = self._state.table.get_unended(event.request)
        self._lifecycle.end_all(request, PartEvent.WITHDRAWN, "Withdrawn by the client.", now)

    def on_vanished(self, event: ClientsVanished, now: float) -> None:
        """Whoever waited for these grants is gone; they may come back within the grace."""
        for name in event.requests:
            request = self._state.table.requests.get(name)
            if request is not None and request.attached and is_ungranted(request):
                self._state.table.vanish(request, now)


def _part_of(request: Request, number: int) -> Part:
    if not 0 <= number < len(request.parts):
        raise Rejected("unknown_part", f"The request has no part {number}.")
    return request.parts[number]
