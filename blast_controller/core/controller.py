"""The core: takes events and a time, returns commands. Opens no socket, reads no clock, starts no thread.

Every arrival, completion, lease end and device event is a decision point at which all pending parts are considered.
An application event that is refused raises a RequestError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from blast_controller.core import part_states
from blast_controller.core.admission import check_extension, check_feasible, check_request, group_of
from blast_controller.core.allocation import Allocator
from blast_controller.core.commands import Command, Publish
from blast_controller.core.errors import KeyReused, Rejected, RequestEnded, UnknownRequest
from blast_controller.core.events import (
    ClientVanished,
    DecisionTimed,
    DeviceDown,
    DeviceUp,
    ElementQuarantined,
    ElementReleased,
    Event,
    ExtensionAsked,
    FinishAsked,
    RequestSubmitted,
    StepConfirmed,
    StepFailed,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.fabric import Fabric
from blast_controller.core.ledger import Ledger
from blast_controller.core.outbox import Outbox
from blast_controller.core.part_states import PartEvent, PartState
from blast_controller.core.requests import (
    EventKind,
    Grant,
    MulticastRequest,
    Part,
    Request,
    RequestEvent,
    RequestKey,
    Timings,
)
from blast_controller.core.reservation import Reservation
from blast_controller.core.reservation_states import ReservationState
from blast_controller.core.reservations import (
    Changed,
    ChangeRefused,
    Gone,
    Lit,
    NotLit,
    Outcome,
    Reservations,
    Stuck,
)
from blast_controller.core.settings import CoreSettings
from blast_controller.core.timers import Deadline, GraceEnd, LeaseEnd, MemoryEnd, PatienceEnd, Retry, Timers


class Core:
    """The controller's decisions. `handle` is the only way to change it; everything else only looks."""

    def __init__(self, fabric: Fabric, settings: CoreSettings) -> None:
        self.fabric = fabric
        self.settings = settings
        self.ledger = Ledger(fabric, settings.group_network, settings.most_splitters)
        self.requests: dict[RequestKey, Request] = {}
        self._pending: dict[tuple[RequestKey, int], tuple[Request, Part]] = {}
        self._timers = Timers()
        self._outbox = Outbox()
        self._allocator = Allocator(fabric, self.ledger, settings)
        self._reservations = Reservations(self.ledger, self._outbox)
        self._decision_due = False
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            RequestSubmitted: self._on_submitted,
            ExtensionAsked: self._on_extension,
            FinishAsked: self._on_finish,
            WithdrawAsked: self._on_withdraw,
            ClientVanished: self._on_vanished,
            ElementQuarantined: self._on_quarantined,
            ElementReleased: self._on_element_released,
            DeviceUp: self._on_device_up,
            DeviceDown: self._on_device_down,
            StepConfirmed: self._on_answer,
            StepFailed: self._on_answer,
            DecisionTimed: self._on_timed,
            Tick: self._on_tick,
        }
        self._deadlines: dict[type, Callable[[Any, float], None]] = {
            LeaseEnd: self._on_lease_end,
            PatienceEnd: self._on_patience_end,
            GraceEnd: self._on_grace_end,
            MemoryEnd: self._on_memory_end,
            Retry: self._on_retry,
        }
        self._outcomes: dict[type, Callable[[Any, float], None]] = {
            Lit: self._on_lit,
            NotLit: self._on_not_lit,
            Changed: self._on_changed,
            ChangeRefused: self._on_change_refused,
            Gone: self._on_gone,
            Stuck: self._on_stuck,
        }

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take one event at time `now` (seconds on any steady clock) and say what is to be done.

        Raises RequestError when an application's event is refused; nothing has changed then.
        """
        self._handlers[type(event)](event, now)
        if self._decision_due:
            self._decision_due = False
            self._decide()
        return self._outbox.drain()

    def next_timer(self) -> float | None:
        """When `Tick` is wanted at the latest."""
        return self._timers.next()

    # ------------------------------------------------------------------------------------------- looking

    def request(self, key: RequestKey) -> Request:
        """The request with this key. Raises UnknownRequest."""
        try:
            return self.requests[key]
        except KeyError:
            raise UnknownRequest(key[1]) from None

    def reason(self, request: Request, part: Part) -> str | None:
        """Why a part waits or how it ended, as one sentence."""
        if part.state is PartState.PENDING:
            waits = self._allocator.waits_for(request.current, part.receivers)
            return f"{waits} The last attempt failed: {part.reason}." if part.reason else waits
        return part.reason

    @property
    def reservations(self) -> Iterable[Reservation]:
        """All live reservations."""
        return self._reservations.live.values()

    @property
    def pending_count(self) -> int:
        """How many parts wait for light."""
        return len(self._pending)

    # ------------------------------------------------------------------------------------------ deciding

    def _decide(self) -> None:
        for placement in self._allocator.decide(list(self._pending.values())):
            request, part = placement.request, placement.part
            reservation = self._reservations.open(
                request.current.id, part.index, placement.layout, placement.group_address
            )
            part.reservation = reservation.id
            self._move(request, part, PartEvent.PICKED)

    def _move(self, request: Request, part: Part, event: PartEvent) -> None:
        part.state = part_states.after(part.state, event)
        if part.state is PartState.PENDING:
            self._pending[request.current.id, part.index] = (request, part)
            self._decision_due = True
        else:
            self._pending.pop((request.current.id, part.index), None)

    # ------------------------------------------------------------------------------------- applications

    def _on_submitted(self, event: RequestSubmitted, now: float) -> None:
        wanted = event.request
        known = self.requests.get(wanted.id)
        if known is not None:
            if known.content != wanted:
                raise KeyReused(wanted.key)
            known.vanished_at = None
            return
        self._admit(wanted)
        part = Part(0, wanted.receivers)
        request = Request(wanted, wanted, now, [part])
        self.requests[wanted.id] = request
        self._pending[wanted.id, 0] = (request, part)
        self._decision_due = True
        if wanted.patience is not None:
            self._timers.add(now + wanted.patience, PatienceEnd(wanted.id))

    def _admit(self, request: MulticastRequest) -> None:
        if len(self.requests) >= self.settings.most_requests:
            raise Rejected("too_many_requests", "The controller holds as many requests as it may; try again later.")
        check_request(request, self.fabric)
        self._check_feasible(request)

    def _check_feasible(self, request: MulticastRequest) -> None:
        loop_leaf = self.settings.loop_leaf
        group = group_of(request, request.receivers, self.fabric, loop_leaf)
        check_feasible(group, self.fabric, self.ledger, loop_leaf, self.settings.most_splitters)

    def _on_extension(self, event: ExtensionAsked, now: float) -> None:
        request = self.request(event.request)
        self._refuse_ended(request)
        (part,) = request.parts
        wanted = check_extension(request.current, event.extension, self.fabric)
        if part.state is PartState.PENDING:
            self._check_feasible(wanted)
            request.current, part.receivers = wanted, wanted.receivers
            part.extra_lease += event.extension.add_seconds
            self._decision_due = True
            self._publish(request, part, EventKind.CHANGED)
            return
        reservation = self._lit_reservation(part)
        target = self._allocator.extended(reservation.layout, wanted, reservation.group_address)
        outcomes = self._reservations.change(reservation, target, wanted, event.extension.add_seconds)
        self._act_on(outcomes, now)

    def _lit_reservation(self, part: Part) -> Reservation:
        reservation = self._reservations.live[part.reservation] if part.reservation is not None else None
        if reservation is None or reservation.busy:
            raise Rejected(
                "busy", "The light tree is being set up or changed at this moment; ask again when it is done."
            )
        return reservation

    def _on_finish(self, event: FinishAsked, now: float) -> None:
        request = self.request(event.request)
        if not 0 <= event.part < len(request.parts):
            raise Rejected("unknown_part", f"The request has no part {event.part}.")
        part = request.parts[event.part]
        if part.state is PartState.DONE:
            return
        if part.state.final:
            raise RequestEnded(part.state.value, part.reason or "")
        if part.state is not PartState.ACTIVE:
            raise Rejected("not_active", f"Part {event.part} is {part.state.value}: there is nothing to finish.")
        self._end(request, part, PartEvent.FINISHED, "The sender has finished.", now)

    def _on_withdraw(self, event: WithdrawAsked, now: float) -> None:
        request = self.request(event.request)
        if request.state is PartState.WITHDRAWN:
            return
        self._refuse_ended(request)
        self._end_all(request, PartEvent.WITHDRAWN, "Withdrawn by the client.", now)

    def _on_vanished(self, event: ClientVanished, now: float) -> None:
        request = self.requests.get(event.request)
        if request is not None and self._ungranted(request):
            request.vanished_at = now
            self._timers.add(now + self.settings.orphan_grace, GraceEnd(event.request))

    @staticmethod
    def _ungranted(request: Request) -> bool:
        return request.state in (PartState.PENDING, PartState.CONFIGURING)

    @staticmethod
    def _refuse_ended(request: Request) -> None:
        if request.state.final:
            raise RequestEnded(request.state.value, request.parts[-1].reason or "")

    def _end_all(self, request: Request, event: PartEvent, reason: str, now: float) -> None:
        for part in request.parts:
            if not part.state.final:
                self._end(request, part, event, reason, now)

    def _end(self, request: Request, part: Part, event: PartEvent, reason: str, now: float) -> None:
        """Bring a part to a final state; what devices hold for it is undone."""
        self._move(request, part, event)
        part.reason, part.lease_end = reason, None
        reservation = self._reservations.live.get(part.reservation) if part.reservation is not None else None
        if reservation is not None and reservation.state is not ReservationState.RELEASING:
            self._reservations.release(reservation)
        self._publish(request, part, EventKind.ENDED, reason=reason, state=part.state)
        if request.state.final:
            request.ended_at = now
            self._timers.add(now + self.settings.remember_ended, MemoryEnd(request.current.id))

    def _publish(self, request: Request, part: Part, kind: EventKind, **more: Any) -> None:
        event = RequestEvent(len(request.events) + 1, kind, part.index, **more)
        request.events.append(event)
        self._outbox.publish(Publish(request.current.id, event))

    # ------------------------------------------------------------------------------------------ operator

    def _on_quarantined(self, event: ElementQuarantined, now: float) -> None:
        self._check_element(event.element)
        self.ledger.quarantined[event.element] = event.reason or "quarantined"

    def _on_element_released(self, event: ElementReleased, now: float) -> None:
        self._check_element(event.element)
        if self.ledger.quarantined.pop(event.element, None) is None:
            raise Rejected("not_quarantined", f"{event.element} is not quarantined.")
        self._decision_due = True

    def _check_element(self, element: str) -> None:
        if element not in self.ledger.elements:
            raise Rejected(
                "unknown_element", f"The fabric has no element {element!r}; `blast element list` lists them."
            )

    # ------------------------------------------------------------------------------------------- devices

    def _on_device_up(self, event: DeviceUp, now: float) -> None:
        self.ledger.away.pop(event.device, None)
        self._decision_due = True
        if isinstance(event.device, str):
            self._look_at_circuits(event, now)
        else:
            self._reservations.restore_forwards(event.device)
        for reservation in self._reservations.stuck_on(event.device):
            self._reservations.retry(reservation)

    def _look_at_circuits(self, event: DeviceUp, now: float) -> None:
        switch = str(event.device)
        self.ledger.note_foreign(switch, event.circuits - self._reservations.circuits(switch))
        self._reservations.doubt(switch, event.circuits)
        for reservation in self._reservations.dark(switch, event.circuits):
            request = self.requests[reservation.request]
            part = request.parts[reservation.part]
            self._reservations.release(reservation)
            part.reason = f"light lost: {switch} came back without its cross-connects"
            part.grant = part.lease_end = None
            self._move(request, part, PartEvent.LIGHT_LOST)
            self._publish(request, part, EventKind.REVOKED, reason=part.reason)

    def _on_device_down(self, event: DeviceDown, now: float) -> None:
        self.ledger.away[event.device] = event.reason

    def _on_answer(self, event: StepConfirmed | StepFailed, now: float) -> None:
        self._act_on(self._reservations.answered(event), now)

    def _on_timed(self, event: DecisionTimed, now: float) -> None:
        for reservation in self._reservations.live.values():
            if reservation.state is ReservationState.CONFIGURING and reservation.compute is None:
                reservation.compute = event.elapsed

    # ------------------------------------------------------------------------------------------ outcomes

    def _act_on(self, outcomes: list[Outcome], now: float) -> None:
        for outcome in outcomes:
            self._outcomes[type(outcome)](outcome, now)

    def _part_of(self, reservation: Reservation) -> tuple[Request, Part]:
        request = self.requests[reservation.request]
        return request, request.parts[reservation.part]

    def _on_lit(self, outcome: Lit, now: float) -> None:
        request, part = self._part_of(outcome.reservation)
        self._move(request, part, PartEvent.CONFIRMED)
        part.reason, part.failures = None, 0
        part.grant = self._grant(request, part, outcome.reservation, now)
        self._lease(request, part, now + part.grant.lease)
        self._publish(request, part, EventKind.GRANTED, grant=part.grant)

    def _on_not_lit(self, outcome: NotLit, now: float) -> None:
        request, part = self._part_of(outcome.reservation)
        part.failures += 1
        part.reason = outcome.reason
        if part.failures >= self.settings.failures_allowed:
            self._end(request, part, PartEvent.GIVEN_UP, outcome.reason, now)
        else:
            self._move(request, part, PartEvent.FAILURE)

    def _on_changed(self, outcome: Changed, now: float) -> None:
        request, part = self._part_of(outcome.reservation)
        request.current = outcome.change.request
        part.receivers = outcome.change.request.receivers
        part.extra_lease += outcome.change.extra_lease
        lease_before = part.grant.lease if part.grant else 0.0
        part.grant = self._grant(request, part, outcome.reservation, now)
        # More bytes lengthen the lease as more time does; both count from the first grant.
        self._lease(request, part, (part.lease_end or now) + part.grant.lease - lease_before)
        self._publish(request, part, EventKind.CHANGED, grant=part.grant)
        self._decision_due = True

    def _on_change_refused(self, outcome: ChangeRefused, now: float) -> None:
        request, part = self._part_of(outcome.reservation)
        self._publish(request, part, EventKind.CHANGED, grant=part.grant, reason=outcome.reason)
        self._decision_due = True

    def _on_gone(self, outcome: Gone, now: float) -> None:
        self._decision_due = True

    def _on_stuck(self, outcome: Stuck, now: float) -> None:
        self._timers.add(now + self.settings.retry_after, Retry(outcome.reservation.id))

    def _lease(self, request: Request, part: Part, end: float) -> None:
        part.lease_end = end
        self._timers.add(end, LeaseEnd(request.current.id, part.index))

    def _grant(self, request: Request, part: Part, reservation: Reservation, now: float) -> Grant:
        rate = min(self.fabric.light_rate, request.current.highest_rate or self.fabric.light_rate)
        service = request.current.bytes * 8 / rate
        lease = max(self.settings.lease_minimum, service * self.settings.lease_factor) + part.extra_lease
        waiting = [p for p in request.parts if not p.state.final and p.grant is None and p is not part]
        return Grant(
            part=part.index,
            receivers=part.receivers,
            group_address=reservation.group_address,
            group_port=self.settings.group_port,
            rate=rate,
            estimated_service=service,
            lease=lease,
            first_byte=0,
            unserved=tuple(host for p in waiting for host in p.receivers),
            reservation=reservation.id,
            timings=self._timings(request, reservation, now),
        )

    @staticmethod
    def _timings(request: Request, reservation: Reservation, now: float) -> Timings:
        tors = [seconds for device, seconds in reservation.elapsed.items() if isinstance(device, int)]
        switches = [seconds for device, seconds in reservation.elapsed.items() if isinstance(device, str)]
        total = now - request.received_at
        return Timings(reservation.compute, max(tors, default=None), max(switches, default=None), total)

    # ------------------------------------------------------------------------------------------ deadlines

    def _on_tick(self, event: Tick, now: float) -> None:
        for deadline in self._timers.due(now):
            self._on_deadline(deadline, now)

    def _on_deadline(self, deadline: Deadline, now: float) -> None:
        self._deadlines[type(deadline)](deadline, now)

    def _on_lease_end(self, deadline: LeaseEnd, now: float) -> None:
        request = self.requests.get(deadline.request)
        if request is None:
            return
        part = request.parts[deadline.part]
        if part.state is PartState.ACTIVE and part.lease_end is not None and part.lease_end <= now:
            self._end(
                request, part, PartEvent.LEASE_END, "The lease is over; extend it in time to keep the light.", now
            )

    def _on_patience_end(self, deadline: PatienceEnd, now: float) -> None:
        request = self.requests.get(deadline.request)
        if request is not None and self._ungranted(request):
            self._end_all(request, PartEvent.PATIENCE_OVER, "No light became free within the patience given.", now)

    def _on_grace_end(self, deadline: GraceEnd, now: float) -> None:
        request = self.requests.get(deadline.request)
        if request is None or request.vanished_at is None or not self._ungranted(request):
            return
        if request.vanished_at + self.settings.orphan_grace <= now:
            self._end_all(request, PartEvent.WITHDRAWN, "The client vanished before the grant.", now)

    def _on_memory_end(self, deadline: MemoryEnd, now: float) -> None:
        request = self.requests.get(deadline.request)
        if request is None or request.ended_at is None:
            return
        if any(reservation.request == deadline.request for reservation in self.reservations):
            self._timers.add(now + self.settings.remember_ended, deadline)
        elif request.ended_at + self.settings.remember_ended <= now:
            del self.requests[deadline.request]

    def _on_retry(self, deadline: Retry, now: float) -> None:
        reservation = self._reservations.live.get(deadline.reservation)
        if reservation is not None:
            self._reservations.retry(reservation)
