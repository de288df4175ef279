"""Methods about requests that have code of their own: most of them wait for what happens to one."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from blast_api import ttypes
from blast_controller.core.model.errors import RejectedError, RequestEndedError, RequestTimeoutError
from blast_controller.core.model.events import (
    ExtendRequested,
    FinishRequested,
    ProgressReported,
    RequestSubmitted,
    WithdrawRequested,
)
from blast_controller.core.model.requests import EventKind, MulticastRequest, Request, RequestEvent, RequestKey
from blast_controller.rpc import acting, convert, pages
from blast_controller.rpc.call_context import Services
from blast_controller.rpc.clients.identity import Identity
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.naming import changed_status, found, named, status_of
from blast_controller.runtime.runtime import CoreContext
from blast_controller.runtime.waiting import Wait, WaitingCaller

LONGEST_WAIT = 24 * 3600.0
"""Seconds; a client that waits longer calls again."""


def submit(
    services: Services, connection: Connection, request: ttypes.MulticastRequest | None
) -> Future[ttypes.RequestStatus]:
    """Ask and return at once."""
    submitted = _to_request(services, connection, request)

    def work(context: CoreContext) -> Future[ttypes.RequestStatus]:
        context.take(RequestSubmitted(submitted))
        return context.when_decided(lambda: status_of(context, submitted.id))

    return services.do(connection, work)


def request_grant(
    services: Services, connection: Connection, request: ttypes.MulticastRequest | None, timeout_ms: int | None
) -> Future[ttypes.Grant]:
    """Submit and wait for the first grant."""
    submitted = _to_request(services, connection, request)
    timeout, caller = _seconds(timeout_ms), WaitingCaller(services.gate.account(connection), for_grant=True)

    def work(context: CoreContext) -> ttypes.Grant | Future[ttypes.Grant]:
        context.check_place(caller)
        services.attached.check(caller.account)
        context.take(RequestSubmitted(submitted, attached=True))
        asked = context.core.request(submitted.id)
        if asked.state.final:
            raise RequestEndedError(asked.state.value, asked.parts[-1].reason or "")
        granted = next((part.grant for part in asked.parts if part.grant and not part.state.final), None)
        if granted is not None:
            return convert.grant(submitted.key, granted)
        _attach(services, context, connection, asked, caller.account)
        return context.wait(
            submitted.id,
            timeout,
            Wait(
                matches=_is_grant,
                answer=lambda event: _first_grant(submitted.key, event),
                too_late=lambda: _not_yet(services.later(), asked),
                caller=caller,
                or_last=True,
            ),
        )

    return services.do(connection, work)


def _attach(
    services: Services, context: CoreContext, connection: Connection, request: Request, account: Hashable
) -> None:
    """Remember who asked, until the request is granted or over; also when the wait itself ends before that."""
    name = request.current.id
    if services.attached.begin_watch(name):
        settled = Wait(
            matches=_is_grant,
            answer=lambda event: None,
            too_late=lambda: RequestTimeoutError(""),
            or_last=True,
        )
        context.wait(name, math.inf, settled).add_done_callback(lambda done: services.attached.settle(name))
    services.attached.add(connection.id, name, account)


def await_event(
    services: Services, connection: Connection, key: str | None, after_sequence: int | None, timeout_ms: int | None
) -> Future[ttypes.Event]:
    """Return the first event after `after_sequence`, or the oldest after it that is kept."""
    timeout = _seconds(timeout_ms)
    after = after_sequence or 0
    client, caller = services.gate.identity(connection), WaitingCaller(services.gate.account(connection))

    def work(context: CoreContext) -> ttypes.Event | Future[ttypes.Event]:
        context.check_leader()
        request = found(context, client, key)
        event = next((e for e in request.events if e.sequence > after), None)
        if event is not None:
            return convert.event(request.current.key, event)
        if request.state.final:
            raise RequestEndedError(request.state.value, request.parts[-1].reason or "")
        return context.wait(
            request.current.id,
            timeout,
            Wait(
                # A client that waits for an event that cannot occur receives the end.
                matches=lambda event: event.sequence > after,
                or_last=True,
                answer=lambda event: _event_or_end(request, event, after),
                too_late=lambda: _not_yet(services.later(), request),
                caller=caller,
                after=after,
            ),
        )

    return services.do(connection, work)


def extend(
    services: Services, connection: Connection, key: str | None, extension: ttypes.Extension | None
) -> Future[ttypes.RequestStatus]:
    """Change a request; the answer comes when the change is in force."""
    change, progress = convert.to_extension(extension), convert.to_progress(extension)
    client, caller = (
        services.gate.identity(connection),
        WaitingCaller(services.gate.account(connection), for_grant=True),
    )

    def work(context: CoreContext) -> Future[ttypes.RequestStatus]:
        context.check_leader()
        request = found(context, client, key)
        name, before = request.current.id, request.latest_event
        if progress is not None:
            context.take(ProgressReported(name, *progress))
            return context.when_decided(lambda: status_of(context, name))
        context.check_place(caller)
        context.take(ExtendRequested(name, change))
        happened = [event for event in request.events if event.sequence > before]
        if happened:
            convert.refuse_failed_change(happened[0])
            return context.when_decided(lambda: status_of(context, name))
        return context.wait(
            name,
            LONGEST_WAIT,
            Wait(
                matches=lambda event: event.kind in (EventKind.CHANGED, EventKind.REVOKED, EventKind.ENDED),
                answer=lambda event: in_force(services.later(), name, event),
                too_late=lambda: RejectedError(
                    "too_slow", "The change is still in progress; call `status` for its result."
                ),
                caller=caller,
            ),
        )

    def in_force(context: CoreContext, name: RequestKey, event: RequestEvent) -> ttypes.RequestStatus:
        convert.refuse_failed_change(event)
        return changed_status(context, name)

    return services.do(connection, work)


def to_finish(part: int | None, report: ttypes.TransferReport | None) -> Callable[[RequestKey], FinishRequested]:
    """Return a function that makes the event of a finished part. Raises Rejected if `part` is None."""
    if part is None:
        raise ttypes.Rejected("unknown_part", "Give the number of the finished part; the first part is 0.")
    transfer = convert.to_transfer_report(report)
    return lambda name: FinishRequested(name, part, transfer)


def withdraw(services: Services, connection: Connection, key: str | None) -> Future[ttypes.RequestStatus]:
    """Withdraw a request, for its client or an operator."""
    client = services.gate.identity(connection)

    def work(context: CoreContext) -> Future[ttypes.RequestStatus]:
        name = named(context.core.requests, client, key)
        if name[0] == client.tenant and not connection.by_hand:
            context.take(WithdrawRequested(name))
        else:
            asked = WithdrawRequested(name, "an operator")
            context.take(asked)
            acting.record(context, services.gate, connection, asked)
        return context.when_decided(lambda: status_of(context, name))

    return services.do(connection, work)


def status(context: CoreContext, client: Identity, key: str | None) -> ttypes.RequestStatus:
    """Return the status of a request."""
    return status_of(context, named(context.snapshot.requests.by_name, client, key))


def explain(context: CoreContext, client: Identity, key: str | None) -> ttypes.Explanation:
    """Return what blocks a request, its earliest start, and a change that lets it start now."""
    context.check_leader()
    return convert.explanation(
        context.core.explain(named(context.core.requests, client, key), client.only_tenant, context.now)
    )


def list_requests(
    services: Services,
    connection: Connection,
    filter_: ttypes.RequestFilter | None,
    limit: int | None,
    cursor: str | None,
) -> ttypes.RequestPage | Future[ttypes.RequestPage]:
    """Return a page of requests in order of arrival."""
    tenant = services.gate.tenant_to_list(connection, filter_.tenant if filter_ else None)
    page = pages.page(services.runtime.look(), pages.to_page_query(filter_, limit, cursor, tenant))
    if not page.waiting:
        return page.answer
    return services.do(connection, lambda context: page.with_reasons(context.core, context.now))


def _to_request(
    services: Services, connection: Connection, request: ttypes.MulticastRequest | None
) -> MulticastRequest:
    tenant = services.gate.tenant_for(connection, request.tenant if request else None)
    return convert.to_request(request, tenant)


def _is_grant(event: RequestEvent) -> bool:
    return event.kind is EventKind.GRANTED


def _first_grant(key: str, event: RequestEvent) -> ttypes.Grant:
    if event.grant is None:
        raise RequestEndedError(event.state.value if event.state else "", event.reason or "")
    return convert.grant(key, event.grant)


def _event_or_end(request: Request, event: RequestEvent, after: int) -> ttypes.Event:
    if event.sequence <= after:
        raise RequestEndedError(request.state.value, event.reason or "")
    return convert.event(request.current.key, event)


def _not_yet(context: CoreContext, request: Request) -> RequestTimeoutError:
    reasons = [context.core.reason(request.current, part, context.now) for part in request.parts]
    return RequestTimeoutError(
        " ".join(reason for reason in reasons if reason) or "No event occurred within the timeout."
    )


def _seconds(milliseconds: int | None) -> float:
    if milliseconds is None or milliseconds < 0:
        raise ttypes.TimedOut("The timeout must be a non-negative number of milliseconds.")
    return min(milliseconds / 1000, LONGEST_WAIT)
