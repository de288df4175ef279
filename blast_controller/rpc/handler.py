"""What the Thrift methods do: turn calls into events for the core, and the core's state into answers."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from importlib.metadata import version
from typing import NoReturn, TypeVar

from blast_api import ttypes
from blast_controller.core.errors import NotYet, Rejected, RequestEnded
from blast_controller.core.events import (
    AuditAsked,
    ClientsVanished,
    DrainAsked,
    ElementQuarantined,
    ElementReleased,
    ExtensionAsked,
    FinishAsked,
    ProgressTold,
    RequestSubmitted,
    VerifyAsked,
    WithdrawAsked,
)
from blast_controller.core.identifiers import ElementId
from blast_controller.core.requests import EventKind, MulticastRequest, Request, RequestEvent, RequestKey
from blast_controller.core.wording import listed
from blast_controller.rpc import convert, pages
from blast_controller.rpc.access import name_request
from blast_controller.rpc.attachments import Attachments
from blast_controller.rpc.condition import Condition, Healthy
from blast_controller.rpc.connection import Connection
from blast_controller.rpc.gate import Gate
from blast_controller.rpc.identity import Identity
from blast_controller.runtime import Runtime, Turn
from blast_controller.waiting import Seat, Wait

T = TypeVar("T")

PROTOCOL = 1
FEATURES = (
    "deadlines",
    "drain",
    "elements",
    "explain",
    "extend",
    "fabric",
    "holding",
    "journal",
    "list",
    "pausing",
    "priorities",
    "quarantine",
    "reconcile",
    "splitting",
    "verify",
    "withdraw",
)
LONGEST_WAIT = 24 * 3600.0
LONGEST_READING = 30.0
LONGEST_PROBING = 3600.0
NONCE_BYTES = 32
_ASKED_TOO_MUCH = frozenset({"too_many_waiting", "too_many_pending", "too_many_requests"})
"""Refusals after which a connection is left alone for a while, besides what the gate refuses."""

History = Callable[[int, int], Iterable[tuple[int, str, str]]]
"""From (after sequence, limit) to (sequence, kind, JSON) of what was written."""


class BlastHandler:
    """Methods of `BlastOperator`. Each hands its work to the runtime and returns a future."""

    at_once = frozenset({"submit", "request", "awaitEvent", "extend", "finish", "withdraw", "status", "ping"})

    def __init__(
        self,
        runtime: Runtime,
        openflow_framework: str,
        history: History,
        gate: Gate,
        condition: Condition | None = None,
    ) -> None:
        self._runtime = runtime
        self._condition = condition or Healthy()
        self._history = history
        self._gate = gate
        self._openflow_framework = openflow_framework
        self._attached = Attachments()

    # ------------------------------------------------------------------------------------------- requests

    def submit(self, connection: Connection, request: ttypes.MulticastRequest) -> Future[ttypes.RequestStatus]:
        """Ask and return at once."""
        wanted = self._wanted(connection, request)

        def work(turn: Turn) -> Future[ttypes.RequestStatus]:
            turn.take(RequestSubmitted(wanted))
            return turn.when_decided(lambda: _status(turn, wanted.id))

        return self._do(connection, work)

    def request(
        self,
        connection: Connection,
        request: ttypes.MulticastRequest,
        timeout_ms: int,
    ) -> Future[ttypes.Grant]:
        """Submit and wait for the first grant."""
        wanted = self._wanted(connection, request)
        timeout, seat = _seconds(timeout_ms), Seat(self._gate.account(connection), asks=True)

        def work(turn: Turn) -> ttypes.Grant | Future[ttypes.Grant]:
            turn.check_place(seat)
            self._attached.check(seat.account)
            turn.take(RequestSubmitted(wanted, attached=True))
            found = turn.core.request(wanted.id)
            if found.state.final:
                raise RequestEnded(found.state.value, found.parts[-1].reason or "")
            granted = next((part.grant for part in found.parts if part.grant and not part.state.final), None)
            if granted is not None:
                return convert.grant(wanted.key, granted)
            self._attach(turn, connection, found, seat.account)
            return turn.wait(
                wanted.id,
                timeout,
                Wait(
                    wanted=lambda event: _is_settled(found, event),
                    answer=lambda event: _first_grant(wanted.key, event),
                    too_late=lambda: _not_yet(Turn(self._runtime), found),
                    seat=seat,
                ),
            )

        return self._do(connection, work)

    def _attach(self, turn: Turn, connection: Connection, request: Request, account: Hashable) -> None:
        """Remember who asked, until the request is granted or over; also when the wait itself ends before that."""
        name = request.current.id
        if self._attached.begin_watch(name):
            settled = Wait(
                wanted=lambda event: _is_settled(request, event),
                answer=lambda event: None,
                too_late=lambda: NotYet(""),
            )
            turn.wait(name, math.inf, settled).add_done_callback(lambda done: self._attached.settle(name))
        self._attached.add(connection.id, name, account)

    def awaitEvent(  # noqa: N802  Thrift's name
        self,
        connection: Connection,
        key: str,
        after_sequence: int,
        timeout_ms: int,
    ) -> Future[ttypes.Event]:
        """The first event after `after_sequence`, or the oldest after it that is kept."""
        timeout = _seconds(timeout_ms)
        after = after_sequence or 0
        client, seat = self._gate.identity(connection), Seat(self._gate.account(connection))

        def work(turn: Turn) -> ttypes.Event | Future[ttypes.Event]:
            found = _find(turn, client, key)
            event = next((e for e in found.events if e.sequence > after), None)
            if event is not None:
                return convert.event(found.current.key, event)
            if found.state.final:
                raise RequestEnded(found.state.value, found.parts[-1].reason or "")
            return turn.wait(
                found.current.id,
                timeout,
                Wait(
                    # Whoever asks for what will never happen hears of the end.
                    wanted=lambda event: (
                        event.sequence > after or (event.kind is EventKind.ENDED and found.state.final)
                    ),
                    answer=lambda event: _event_or_end(found, event, after),
                    too_late=lambda: _not_yet(Turn(self._runtime), found),
                    seat=seat,
                    after=after,
                ),
            )

        return self._do(connection, work)

    def extend(self, connection: Connection, key: str, extension: ttypes.Extension) -> Future[ttypes.RequestStatus]:
        """Change a request; answers when the change is in force."""
        self._gate.admit(connection)
        wanted, progress = convert.to_extension(extension), convert.to_progress(extension)
        client, seat = self._gate.identity(connection), Seat(self._gate.account(connection), asks=True)

        def work(turn: Turn) -> Future[ttypes.RequestStatus]:
            found = _find(turn, client, key)
            name, before = found.current.id, found.told
            if progress is not None:
                turn.take(ProgressTold(name, *progress))
                return turn.when_decided(lambda: _status(turn, name))
            turn.check_place(seat)
            turn.take(ExtensionAsked(name, wanted))
            happened = [event for event in found.events if event.sequence > before]
            if happened:
                convert.refuse_failed_change(happened[0])
                return turn.when_decided(lambda: _status(turn, name))
            return turn.wait(
                name,
                LONGEST_WAIT,
                Wait(
                    wanted=lambda event: event.kind in (EventKind.CHANGED, EventKind.REVOKED, EventKind.ENDED),
                    answer=lambda event: in_force(Turn(self._runtime), name, event),
                    too_late=lambda: Rejected("too_slow", "The change is still being made; `status` tells when it is."),
                    seat=seat,
                ),
            )

        def in_force(turn: Turn, name: RequestKey, event: RequestEvent) -> ttypes.RequestStatus:
            convert.refuse_failed_change(event)
            return _status(turn, name)

        return self._do(connection, work)

    def finish(
        self, connection: Connection, key: str, part: int, report: ttypes.TransferReport
    ) -> Future[ttypes.RequestStatus]:
        """The transfer is over."""
        if part is None:
            raise ttypes.Rejected("unknown_part", "Name the part that is finished; a request's first part is 0.")
        told = convert.to_transfer_report(report)
        return self._change(connection, key, lambda name: FinishAsked(name, part, told))

    def withdraw(self, connection: Connection, key: str) -> Future[ttypes.RequestStatus]:
        """Give the request up."""
        return self._change(connection, key, WithdrawAsked)

    def status(self, connection: Connection, key: str) -> Future[ttypes.RequestStatus]:
        """What became of a request."""
        client = self._gate.identity(connection)
        return self._do(connection, lambda turn: _status(turn, _name(turn, client, key)))

    def explain(self, connection: Connection, key: str) -> Future[ttypes.Explanation]:
        """What blocks a request, when it could start, and what would free it now."""
        client = self._gate.identity(connection)

        def work(turn: Turn) -> ttypes.Explanation:
            return convert.explanation(turn.core.explain(_name(turn, client, key), client.only_tenant, turn.now))

        return self._do(connection, work)

    def listRequests(  # noqa: N802  Thrift's name
        self,
        connection: Connection,
        filter_: ttypes.RequestFilter,
        limit: int,
        cursor: str,
    ) -> Future[ttypes.RequestPage]:
        """A page of requests in order of arrival."""
        tenant = self._gate.tenant_to_list(connection, filter_.tenant if filter_ else None)
        page = pages.to_page_query(filter_, limit, cursor, tenant)
        return self._do(connection, lambda turn: pages.page(turn.core, page, turn.now))

    # --------------------------------------------------------------------------------- fabric and elements

    def fabric(self, connection: Connection) -> Future[ttypes.FabricStatus]:
        """Racks, splitters, switches and light trees."""
        tenant = self._gate.identity(connection).only_tenant
        return self._do(connection, lambda turn: convert.fabric(turn.core, tenant, self._condition.warnings()))

    def elements(self, connection: Connection) -> Future[list[ttypes.ElementStatus]]:
        """Every piece of hardware and who holds it."""
        return self._do(connection, lambda turn: convert.elements(turn.core))

    def quarantine(self, connection: Connection, element: str, reason: str) -> Future[None]:
        """Take an element out of use."""
        return self._do(connection, lambda turn: turn.handle(ElementQuarantined(ElementId(element), reason)))

    def releaseElement(self, connection: Connection, element: str) -> Future[None]:  # noqa: N802  Thrift's name
        """Bring an element back."""
        return self._do(connection, lambda turn: turn.handle(ElementReleased(ElementId(element))))

    def version(self, connection: Connection) -> ttypes.Version:
        """What this server is and serves."""
        features = sorted({*FEATURES, *self._gate.policy.features})
        return ttypes.Version(version("blast-controller"), PROTOCOL, features, self._openflow_framework)

    def ping(self, connection: Connection) -> None:
        """Answer."""

    def login(self, connection: Connection, token: str) -> None:
        """Take a token for who the client is."""
        if "login" not in self._gate.policy.features:
            _unsupported("login")
        self._gate.login(connection, token or "")

    def drain(self, connection: Connection, on: bool | None) -> Future[ttypes.DrainStatus]:
        """Admit nothing new, or admit again; left out: only tell. What is active goes on."""

        def work(turn: Turn) -> ttypes.DrainStatus:
            if on is not None:
                turn.handle(DrainAsked(on))
            return ttypes.DrainStatus(turn.core.draining, turn.core.active_count, turn.core.pending_count)

        return self._do(connection, work)

    def reconcile(self, connection: Connection, dry_run: bool) -> Future[ttypes.ReconcileReport]:
        """Read every device that is there and repair what differs; answers when all were read."""
        seat = Seat(self._gate.account(connection), asks=True)

        def work(turn: Turn) -> Future[ttypes.ReconcileReport]:
            turn.handle(AuditAsked(bool(dry_run)))
            wait = Wait(lambda report: True, convert.reconcile_report, lambda: _unread(turn.core.audit_waits_for), seat)
            return turn.wait_announced(turn.core.audit_number, LONGEST_READING, wait)

        return self._do(connection, work)

    def verifyFabric(self, connection: Connection) -> Future[ttypes.FibreReport]:  # noqa: N802  Thrift's name
        """Probe every free fibre; answers when all are done. Who asks while that goes on gets the same report."""
        seat = Seat(self._gate.account(connection), asks=True)

        def work(turn: Turn) -> Future[ttypes.FibreReport]:
            turn.handle(VerifyAsked(secrets.token_bytes(NONCE_BYTES)))
            too_late = Rejected("too_slow", "The fibres are still being probed; ask again for the same report.")
            wait = Wait(lambda report: True, convert.fibre_report, lambda: too_late, seat)
            return turn.wait_announced(turn.core.fibre_topic, LONGEST_PROBING, wait)

        return self._do(connection, work)

    def resume(self, connection: Connection) -> None:
        """Let a controller that is holding decide again."""
        try:
            self._condition.resume()
        except Rejected as error:
            raise convert.to_thrift_error(error) from error

    def journal(self, connection: Connection, after_sequence: int, limit: int) -> list[ttypes.JournalEntry]:
        """What was written, oldest first."""
        if limit is None or not 1 <= limit <= pages.LARGEST_PAGE:
            raise ttypes.Denied(f"The limit must be between 1 and {pages.LARGEST_PAGE}.")
        return [ttypes.JournalEntry(*entry) for entry in self._history(after_sequence or 0, limit)]

    # --------------------------------------------------------------------------------------------- inside

    def disconnected(self, connection: Connection) -> None:
        """A client is gone: what it waited for with `request` is given up after a grace."""

        def work(turn: Turn) -> None:
            # The client may have come back on another connection before this one was seen to be dead.
            left = self._attached.leave(connection.id)
            if left:
                turn.take(ClientsVanished(left))

        # Behind all that it has called.
        self._runtime.call_for(connection.account, Future(), work)

    def _wanted(self, connection: Connection, request: ttypes.MulticastRequest) -> MulticastRequest:
        self._gate.admit(connection)
        tenant = self._gate.tenant_for(connection, request.tenant if request else None)
        return convert.to_request(request, tenant)

    def _change(
        self, connection: Connection, key: str, event: Callable[[RequestKey], FinishAsked | WithdrawAsked]
    ) -> Future[ttypes.RequestStatus]:
        client = self._gate.identity(connection)

        def work(turn: Turn) -> ttypes.RequestStatus:
            name = _name(turn, client, key)
            turn.take(event(name))
            return _status(turn, name)

        return self._do(connection, work)

    def _do(self, connection: Connection, work: Callable[[Turn], T | Future[T]]) -> Future[T]:
        if connection.account is None:
            # For good: whose calls change their account on the way could overtake each other.
            connection.account = self._gate.account(connection)
        answer: Future[T] = convert.ThriftFuture()
        self._runtime.call_for(connection.account, answer, lambda turn: _noting_too_much(connection, turn, work))
        return answer


def _noting_too_much(connection: Connection, turn: Turn, work: Callable[[Turn], T]) -> T:
    try:
        return work(turn)
    except Rejected as refusal:
        if refusal.code in _ASKED_TOO_MUCH:
            connection.asked_too_much(turn.now)
        raise


def _name(turn: Turn, client: Identity, key: str | None) -> RequestKey:
    text = key or ""
    return name_request(client, text, (client.tenant, text) in turn.core.requests)


def _find(turn: Turn, client: Identity, key: str | None) -> Request:
    return turn.core.request(_name(turn, client, key))


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


def _status(turn: Turn, request: RequestKey) -> ttypes.RequestStatus:
    return convert.status(turn.core, turn.core.request(request), turn.now)


def _not_yet(turn: Turn, request: Request) -> NotYet:
    reasons = [turn.core.reason(request, part, turn.now) for part in request.parts]
    return NotYet(" ".join(reason for reason in reasons if reason) or "Nothing happened within the time given.")


def _unread(devices: list[str]) -> Rejected:
    return Rejected(
        "device_away",
        f"Not compared, because no answer came within {LONGEST_READING:g} s: {listed(devices)}. "
        "What was found on the others, the journal tells (`blast journal show`).",
    )


def _seconds(milliseconds: int | None) -> float:
    if milliseconds is None or milliseconds < 0:
        raise ttypes.NotYet("Give the time to wait, in milliseconds, not negative.")
    return min(milliseconds / 1000, LONGEST_WAIT)


def _unsupported(feature: str) -> NoReturn:
    raise ttypes.Unsupported(
        feature, f"This server does not serve the feature {feature!r}; version() lists what it serves."
    )
