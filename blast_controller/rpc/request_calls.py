"""Methods about requests that have code of their own: most of them wait for what happens to one."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from blast_api import ttypes
from blast_controller.core.model.errors import Rejected, RequestEnded, TimedOut
from blast_controller.core.model.events import (
    ExtensionAsked,
    FinishAsked,
    ProgressReported,
    RequestSubmitted,
    WithdrawAsked,
)
from blast_controller.core.model.requests import EventKind, MulticastRequest, Request, RequestEvent, RequestKey
from blast_controller.rpc import acting, convert, pages
from blast_controller.rpc.clients.identity import Identity
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.desk import Desk
from blast_controller.rpc.naming import changed_status, found, named, status_of
from blast_controller.runtime.runtime import Turn
from blast_controller.runtime.waiting import Seat, Wait

LONGEST_WAIT = 24 * 3600.0


def submit(desk: Desk, connection: Connection, request: ttypes.MulticastRequest | None) -> Future[ttypes.RequestStatus]:
    """Ask and return at once."""
    wanted = _wanted(desk, connection, request)

    def work(turn: Turn) -> Future[ttypes.RequestStatus]:
        turn.take(RequestSubmitted(wanted))
        return turn.when_decided(lambda: status_of(turn, wanted.id))

    return desk.do(connection, work)


def request_grant(
    desk: Desk, connection: Connection, request: ttypes.MulticastRequest | None, timeout_ms: int | None
) -> Future[ttypes.Grant]:
    """Submit and wait for the first grant."""
    wanted = _wanted(desk, connection, request)
    timeout, seat = _seconds(timeout_ms), Seat(desk.gate.account(connection), asks=True)

    def work(turn: Turn) -> ttypes.Grant | Future[ttypes.Grant]:
        turn.check_place(seat)
        desk.attached.check(seat.account)
        turn.take(RequestSubmitted(wanted, attached=True))
        asked = turn.core.request(wanted.id)
        if asked.state.final:
            raise RequestEnded(asked.state.value, asked.parts[-1].reason or "")
        granted = next((part.grant for part in asked.parts if part.grant and not part.state.final), None)
        if granted is not None:
            return convert.grant(wanted.key, granted)
        _attach(desk, turn, connection, asked, seat.account)
        return turn.wait(
            wanted.id,
            timeout,
            Wait(
                wanted=lambda event: _is_settled(asked, event),
                answer=lambda event: _first_grant(wanted.key, event),
                too_late=lambda: _not_yet(desk.later(), asked),
                seat=seat,
            ),
        )

    return desk.do(connection, work)


def _attach(desk: Desk, turn: Turn, connection: Connection, request: Request, account: Hashable) -> None:
    """Remember who asked, until the request is granted or over; also when the wait itself ends before that."""
    name = request.current.id
    if desk.attached.begin_watch(name):
        settled = Wait(
            wanted=lambda event: _is_settled(request, event),
            answer=lambda event: None,
            too_late=lambda: TimedOut(""),
        )
        turn.wait(name, math.inf, settled).add_done_callback(lambda done: desk.attached.settle(name))
    desk.attached.add(connection.id, name, account)


def await_event(
    desk: Desk, connection: Connection, key: str | None, after_sequence: int | None, timeout_ms: int | None
) -> Future[ttypes.Event]:
    """The first event after `after_sequence`, or the oldest after it that is kept."""
    timeout = _seconds(timeout_ms)
    after = after_sequence or 0
    client, seat = desk.gate.identity(connection), Seat(desk.gate.account(connection))

    def work(turn: Turn) -> ttypes.Event | Future[ttypes.Event]:
        turn.check_leads()
        request = found(turn, client, key)
        event = next((e for e in request.events if e.sequence > after), None)
        if event is not None:
            return convert.event(request.current.key, event)
        if request.state.final:
            raise RequestEnded(request.state.value, request.parts[-1].reason or "")
        return turn.wait(
            request.current.id,
            timeout,
            Wait(
                # Whoever asks for what will never happen hears of the end.
                wanted=lambda event: event.sequence > after or (event.kind is EventKind.ENDED and request.state.final),
                answer=lambda event: _event_or_end(request, event, after),
                too_late=lambda: _not_yet(desk.later(), request),
                seat=seat,
                after=after,
            ),
        )

    return desk.do(connection, work)


def extend(
    desk: Desk, connection: Connection, key: str | None, extension: ttypes.Extension | None
) -> Future[ttypes.RequestStatus]:
    """Change a request; answers when the change is in force."""
    wanted, progress = convert.to_extension(extension), convert.to_progress(extension)
    client, seat = desk.gate.identity(connection), Seat(desk.gate.account(connection), asks=True)

    def work(turn: Turn) -> Future[ttypes.RequestStatus]:
        turn.check_leads()
        request = found(turn, client, key)
        name, before = request.current.id, request.told
        if progress is not None:
            turn.take(ProgressReported(name, *progress))
            return turn.when_decided(lambda: status_of(turn, name))
        turn.check_place(seat)
        turn.take(ExtensionAsked(name, wanted))
        happened = [event for event in request.events if event.sequence > before]
        if happened:
            convert.refuse_failed_change(happened[0])
            return turn.when_decided(lambda: status_of(turn, name))
        return turn.wait(
            name,
            LONGEST_WAIT,
            Wait(
                wanted=lambda event: event.kind in (EventKind.CHANGED, EventKind.REVOKED, EventKind.ENDED),
                answer=lambda event: in_force(desk.later(), name, event),
                too_late=lambda: Rejected("too_slow", "The change is still being made; `status` tells when it is."),
                seat=seat,
            ),
        )

    def in_force(turn: Turn, name: RequestKey, event: RequestEvent) -> ttypes.RequestStatus:
        convert.refuse_failed_change(event)
        return changed_status(turn, name)

    return desk.do(connection, work)


def to_finish(part: int | None, report: ttypes.TransferReport | None) -> Callable[[RequestKey], FinishAsked]:
    """The transfer of a part is over. Raises Rejected."""
    if part is None:
        raise ttypes.Rejected("unknown_part", "Name the part that is finished; a request's first part is 0.")
    told = convert.to_transfer_report(report)
    return lambda name: FinishAsked(name, part, told)


def withdraw(desk: Desk, connection: Connection, key: str | None) -> Future[ttypes.RequestStatus]:
    """A request is given up: by its client, or by an operator, who may be somebody else."""
    client = desk.gate.identity(connection)

    def work(turn: Turn) -> Future[ttypes.RequestStatus]:
        name = named(turn.core.requests, client, key)
        if name[0] == client.tenant and not connection.by_hand:
            turn.take(WithdrawAsked(name))
        else:
            asked = WithdrawAsked(name, "an operator")
            turn.take(asked)
            acting.tell(turn, desk.gate, connection, asked)
        return turn.when_decided(lambda: status_of(turn, name))

    return desk.do(connection, work)


def status(turn: Turn, client: Identity, key: str | None) -> ttypes.RequestStatus:
    """What became of a request."""
    return status_of(turn, named(turn.snapshot.requests.by_name, client, key))


def explain(turn: Turn, client: Identity, key: str | None) -> ttypes.Explanation:
    """What blocks a request, when it could start, and what would free it now."""
    turn.check_leads()
    return convert.explanation(turn.core.explain(named(turn.core.requests, client, key), client.only_tenant, turn.now))


def list_requests(
    desk: Desk,
    connection: Connection,
    filter_: ttypes.RequestFilter | None,
    limit: int | None,
    cursor: str | None,
) -> ttypes.RequestPage | Future[ttypes.RequestPage]:
    """A page of requests in order of arrival."""
    tenant = desk.gate.tenant_to_list(connection, filter_.tenant if filter_ else None)
    page = pages.page(desk.runtime.look(), pages.to_page_query(filter_, limit, cursor, tenant))
    if not page.waiting:
        return page.told
    return desk.do(connection, lambda turn: page.with_reasons(turn.core, turn.now))


def _wanted(desk: Desk, connection: Connection, request: ttypes.MulticastRequest | None) -> MulticastRequest:
    tenant = desk.gate.tenant_for(connection, request.tenant if request else None)
    return convert.to_request(request, tenant)


def _is_settled(request: Request, event: RequestEvent) -> bool:
    """Whether who waits for the first grant need wait no longer."""
    return event.kind is EventKind.GRANTED or (event.kind is EventKind.ENDED and request.state.final)


def _first_grant(key: str, event: RequestEvent) -> ttypes.Grant:
    if event.grant is None:
        raise RequestEnded(event.state.value if event.state else "", event.reason or "")
    return convert.grant(key, event.grant)


def _event_or_end(request: Request, event: RequestEvent, after: int) -> ttypes.Event:
    if event.sequence <= after:
        raise RequestEnded(request.state.value, event.reason or "")
    return convert.event(request.current.key, event)


def _not_yet(turn: Turn, request: Request) -> TimedOut:
    reasons = [turn.core.reason(request.current, part, turn.now) for part in request.parts]
    return TimedOut(" ".join(reason for reason in reasons if reason) or "Nothing happened within the time given.")


def _seconds(milliseconds: int | None) -> float:
    if milliseconds is None or milliseconds < 0:
        raise ttypes.TimedOut("Give the time to wait, in milliseconds, not negative.")
    return min(milliseconds / 1000, LONGEST_WAIT)
