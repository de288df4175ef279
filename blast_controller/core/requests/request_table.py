"""Requests and their parts: state, events, and changes to be written."""

from __future__ import annotations

from collections import Counter
from typing import Any

from algorithms.scheduling.job import MAX_PARTS, PartName
from blast_controller.core.model import part_states
from blast_controller.core.model.commands import Publish
from blast_controller.core.model.errors import RequestEndedError, UnknownRequestError
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.requests import EventKind, MulticastRequest, Part, Request, RequestEvent, RequestKey
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.timers import (
    GracePeriodExpired,
    LeaseExpired,
    PendingTimeoutExpired,
    RetentionExpired,
    Timers,
)
from blast_controller.core.requests.ended_requests import EndedRequests
from blast_controller.core.requests.event_log import EventLog
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.reservation import Reservation


class RequestTable:
    """All known requests. Changes parts only by their state machine; notifies clients through the outbox.

    `touched` maps requests with an outdated record on disk to a note.
    """

    def __init__(self, orders: StandingOrders, outbox: Outbox, timers: Timers) -> None:
        self._orders = orders
        self._outbox = outbox
        self._timers = timers
        self.requests: dict[RequestKey, Request] = {}
        self.pending: dict[tuple[RequestKey, int], tuple[Request, Part]] = {}
        self.touched: dict[RequestKey, str] = {}
        self.log = EventLog(orders.settings.max_events)
        self.ended = EndedRequests()
        self._forgotten: list[Request] = []
        self._arrivals = 0
        self._pending_of: Counter[str] = Counter()

    def get(self, key: RequestKey) -> Request:
        """Return the request with this key. Raises UnknownRequestError."""
        try:
            return self.requests[key]
        except KeyError:
            raise UnknownRequestError(key[1]) from None

    def named(self, name: PartName) -> tuple[Request, Part]:
        """Return the part that the policy calls by this name. Raises KeyError where it is not known any longer."""
        request = self.requests[name[0]]  # type: ignore[index]
        return request, {part.slot: part for part in request.parts}[name[1]]

    def get_unended(self, key: RequestKey) -> Request:
        """Return the request with this key. Raises UnknownRequestError, RequestEndedError."""
        request = self.get(key)
        if request.state.final:
            raise RequestEndedError(request.state.value, request.parts[-1].reason or "")
        return request

    def pending_of(self, tenant: str) -> int:
        """Return the number of a tenant's pending parts."""
        return self._pending_of[tenant]

    def add(self, content: MulticastRequest, attached: bool, now: float) -> Request:
        """Take a new request that was admitted; it waits as one part."""
        whole = Part(0, content.receivers, slots=MAX_PARTS if content.may_split else 1)
        request = Request(content, content, now, [whole], attached=attached)
        self._enter(request, now)
        self.touched[content.id] = "submitted"
        return request

    def adopt(self, request: Request, now: float) -> None:
        """Adopt a request of an earlier run; all its times restart.

        A grant in setup was never published: its part is pending again, in its old place.
        """
        for part in request.parts:
            if part.state is PartState.CONFIGURING:
                self.move(request, part, PartEvent.FAILURE)
        self._enter(request, now)
        for part in request.parts:
            if part.state is PartState.ACTIVE and part.grant is not None:
                self.lease(request, part, now + min(part.grant.lease, self._orders.settings.lease_maximum))
        if request.ended_at is not None:
            self.remember(request, request.ended_at)
        elif request.attached and is_ungranted(request):
            # Clients that waited for it were connected to the earlier run.
            self.vanish(request, now)

    def _enter(self, request: Request, now: float) -> None:
        self._arrivals += 1
        request.arrival = self._arrivals
        self.requests[request.current.id] = request
        for part in request.parts:
            if part.state is PartState.PENDING:
                self._wait(request, part)
        if request.current.pending_timeout is not None and not request.state.final:
            self._timers.keep(now + request.current.pending_timeout, PendingTimeoutExpired(request.current.id))

    def touch(self, request: Request, note: str) -> None:
        """Mark a request as changed, for the journal and the policy."""
        self.touched[request.current.id] = note

    def split(self, request: Request, part: Part, kept: tuple[str, ...], slots: int) -> Part:
        """Split a pending part: it keeps the receivers `kept` and this number of slots; the others form a new part.

        Returns the new part, which is pending.
        """
        others = tuple(receiver for receiver in part.receivers if receiver not in kept)
        rest = Part(len(request.parts), others, slot=part.slot + slots, slots=part.slots - slots)
        part.receivers, part.slots = kept, slots
        request.parts.append(rest)
        self.touch(request, "split")
        self._wait(request, rest)
        return rest

    def _wait(self, request: Request, part: Part) -> None:
        name = (request.current.id, part.index)
        if name not in self.pending:
            self._pending_of[request.current.tenant] += 1
        self.pending[name] = (request, part)

    def _wait_no_longer(self, request: Request, part: Part) -> None:
        if self.pending.pop((request.current.id, part.index), None) is not None:
            self._pending_of[request.current.tenant] -= 1
            if not self._pending_of[request.current.tenant]:
                del self._pending_of[request.current.tenant]

    def move(self, request: Request, part: Part, event: PartEvent) -> None:
        """Apply an event to the state of a part. Raises ImpossibleTransitionError."""
        part.state = part_states.after(part.state, event)
        self.touched[request.current.id] = event.value
        if part.state is PartState.PENDING:
            self._wait(request, part)
        else:
            self._wait_no_longer(request, part)

    def explain(self, request: Request, part: Part, reason: str | None) -> None:
        """Set the reason in the status of an active part."""
        if part.reason != reason:
            part.reason = reason
            self.touched[request.current.id] = "explained"

    def publish(self, request: Request, part: Part, kind: EventKind, **more: Any) -> None:
        """Append an event to a request and notify clients that wait for it."""
        event = RequestEvent(request.latest_event + 1, kind, part.index, **more)
        self.log.append(request, event)
        self.touched[request.current.id] = kind.value
        self._outbox.publish(Publish(request.current.id, event, last=request.state.final))

    def lease(self, request: Request, part: Part, end: float) -> None:
        """Let an active part's lease end at `end`."""
        part.lease_end = end
        self._timers.keep(end, LeaseExpired(request.current.id, part.index))

    def vanish(self, request: Request, now: float) -> None:
        """Note that the client that waited on its connection disconnected; its grace period begins."""
        request.vanished_at = now
        self._timers.keep(now + self._orders.settings.orphan_grace, GracePeriodExpired(request.current.id))

    def remember(self, request: Request, now: float) -> None:
        """Keep an ended request for its retention."""
        request.ended_at = now
        name = request.current.id
        self.ended.add(name)
        self._timers.drop(PendingTimeoutExpired(name))
        self._timers.drop(GracePeriodExpired(name))
        for part in request.parts:
            self._timers.drop(LeaseExpired(name, part.index))
        self._timers.keep(now + self._orders.settings.remember_ended, RetentionExpired(name))

    def part_of(self, reservation: Reservation) -> tuple[Request, Part]:
        """Return the request and the part of a reservation."""
        request = self.requests[reservation.request]
        return request, request.parts[reservation.part]

    def forget(self, key: RequestKey) -> None:
        """Forget a request."""
        self.ended.discard(key)
        self._timers.drop(RetentionExpired(key))
        request = self.requests.pop(key)
        self.log.forget(request)
        self._forgotten.append(request)
        self.touched[key] = "forgotten"

    def take_forgotten(self) -> list[Request]:
        """Return the requests forgotten since the last call, for the policy."""
        forgotten, self._forgotten = self._forgotten, []
        return forgotten


def is_ungranted(request: Request) -> bool:
    """Return true if no part is served yet."""
    return request.state in (PartState.PENDING, PartState.CONFIGURING)
