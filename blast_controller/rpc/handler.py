"""What the Thrift methods do: turn calls into events for the core, and the core's state into answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from importlib.metadata import version
from typing import NoReturn, TypeVar

from blast_api import ttypes
from blast_controller.core.errors import NotYet, RequestEnded
from blast_controller.core.events import (
    ClientVanished,
    ElementQuarantined,
    ElementReleased,
    ExtensionAsked,
    FinishAsked,
    RequestSubmitted,
    WithdrawAsked,
)
from blast_controller.core.requests import EventKind, Request, RequestEvent, RequestKey
from blast_controller.rpc import convert
from blast_controller.rpc.connection import Connection
from blast_controller.runtime import Runtime, Turn

T = TypeVar("T")

PROTOCOL = 1
DEFAULT_TENANT = "default"
FEATURES = ("elements", "extend", "fabric", "list", "quarantine", "withdraw")
LONGEST_WAIT = 24 * 3600.0


class BlastHandler:
    """Methods of `BlastOperator`. Each runs on a worker, hands the work to the runtime and returns a future."""

    def __init__(self, runtime: Runtime, openflow_framework: str) -> None:
        self._runtime = runtime
        self._openflow_framework = openflow_framework
        self._waiting_for_grant: defaultdict[int, set[RequestKey]] = defaultdict(set)

    # ------------------------------------------------------------------------------------------- requests

    def submit(self, connection: Connection, request: ttypes.MulticastRequest) -> Future[ttypes.RequestStatus]:
        """Ask and return at once."""
        wanted = convert.to_request(request, DEFAULT_TENANT)

        def work(turn: Turn) -> ttypes.RequestStatus:
            turn.handle(RequestSubmitted(wanted))
            return _status(turn, wanted.id)

        return self._do(work)

    def request(
        self,
        connection: Connection,
        request: ttypes.MulticastRequest,
        timeout_ms: int,
    ) -> Future[ttypes.Grant]:
        """Submit and wait for the first grant."""
        wanted = convert.to_request(request, DEFAULT_TENANT)
        timeout = _seconds(timeout_ms)

        def answer(turn: Turn, found: Request) -> ttypes.Grant:
            part = found.parts[0]
            self._waiting_for_grant[connection.id].discard(wanted.id)
            if part.grant is None or part.state.final:
                raise RequestEnded(part.state.value, part.reason or "")
            return convert.grant(wanted.key, part.grant)

        def work(turn: Turn) -> ttypes.Grant | Future[ttypes.Grant]:
            turn.handle(RequestSubmitted(wanted))
            found = turn.core.request(wanted.id)
            if found.parts[0].grant is not None or found.state.final:
                return answer(turn, found)
            self._waiting_for_grant[connection.id].add(wanted.id)
            return turn.wait(
                wanted.id,
                timeout,
                lambda event: event.kind in (EventKind.GRANTED, EventKind.ENDED),
                lambda event: answer(turn, found),
                lambda: _not_yet(turn, found),
            )

        return self._do(work)

    def awaitEvent(  # noqa: N802  Thrift's name
        self,
        connection: Connection,
        key: str,
        after_sequence: int,
        timeout_ms: int,
    ) -> Future[ttypes.Event]:
        """The first event after `after_sequence`."""
        timeout = _seconds(timeout_ms)
        after = after_sequence or 0

        def work(turn: Turn) -> ttypes.Event | Future[ttypes.Event]:
            found = turn.core.request(_id(key))
            event = next((e for e in found.events if e.sequence > after), None)
            if event is not None:
                return convert.event(key, event)
            return turn.wait(
                _id(key),
                timeout,
                lambda event: event.sequence > after,
                lambda event: convert.event(key, event),
                lambda: _not_yet(turn, found),
            )

        return self._do(work)

    def extend(self, connection: Connection, key: str, extension: ttypes.Extension) -> Future[ttypes.RequestStatus]:
        """Change a request; answers when the change is in force."""
        wanted = convert.to_extension(extension)

        def work(turn: Turn) -> ttypes.RequestStatus | Future[ttypes.RequestStatus]:
            before = len(turn.core.request(_id(key)).events)
            turn.handle(ExtensionAsked(_id(key), wanted))
            happened = turn.core.request(_id(key)).events[before:]
            if happened:
                return in_force(turn, happened[0])
            return turn.wait(
                _id(key),
                LONGEST_WAIT,
                lambda event: event.kind in (EventKind.CHANGED, EventKind.REVOKED, EventKind.ENDED),
                lambda event: in_force(Turn(self._runtime), event),
                lambda: _not_yet(turn, turn.core.request(_id(key))),
            )

        def in_force(turn: Turn, event: RequestEvent) -> ttypes.RequestStatus:
            convert.refuse_failed_change(event)
            return _status(turn, _id(key))

        return self._do(work)

    def finish(
        self, connection: Connection, key: str, part: int, report: ttypes.TransferReport
    ) -> Future[ttypes.RequestStatus]:
        """The transfer is over."""
        if part is None:
            raise ttypes.Rejected("unknown_part", "Name the part that is finished; a request's first part is 0.")
        return self._change(key, FinishAsked(_id(key), part))

    def withdraw(self, connection: Connection, key: str) -> Future[ttypes.RequestStatus]:
        """Give the request up."""
        return self._change(key, WithdrawAsked(_id(key)))

    def status(self, connection: Connection, key: str) -> Future[ttypes.RequestStatus]:
        """What became of a request."""
        return self._do(lambda turn: _status(turn, _id(key)))

    def listRequests(  # noqa: N802  Thrift's name
        self,
        connection: Connection,
        filter_: ttypes.RequestFilter,
        limit: int,
        cursor: str,
    ) -> Future[ttypes.RequestPage]:
        """A page of requests in order of arrival."""
        page = convert.to_page_query(filter_, limit, cursor, DEFAULT_TENANT)
        return self._do(lambda turn: convert.page(turn.core, page, turn.now))

    # --------------------------------------------------------------------------------- fabric and elements

    def fabric(self, connection: Connection) -> Future[ttypes.FabricStatus]:
        """Racks, splitters, switches and light trees."""
        return self._do(lambda turn: convert.fabric(turn.core))

    def elements(self, connection: Connection) -> Future[list[ttypes.ElementStatus]]:
        """Every piece of hardware and who holds it."""
        return self._do(lambda turn: convert.elements(turn.core))

    def quarantine(self, connection: Connection, element: str, reason: str) -> Future[None]:
        """Take an element out of use."""
        return self._do(lambda turn: turn.handle(ElementQuarantined(element, reason)))

    def releaseElement(self, connection: Connection, element: str) -> Future[None]:  # noqa: N802  Thrift's name
        """Bring an element back."""
        return self._do(lambda turn: turn.handle(ElementReleased(element)))

    def version(self, connection: Connection) -> ttypes.Version:
        """What this server is and serves."""
        return ttypes.Version(version("blast-controller"), PROTOCOL, list(FEATURES), self._openflow_framework)

    def ping(self, connection: Connection) -> None:
        """Answer."""

    # -------------------------------------------------------------------------------------- not served yet

    def explain(self, connection: Connection, key: str) -> NoReturn:
        """Not served."""
        _unsupported("explain")

    def login(self, connection: Connection, token: str) -> NoReturn:
        """Not served."""
        _unsupported("login")

    def drain(self, connection: Connection, on: bool) -> NoReturn:
        """Not served."""
        _unsupported("drain")

    def reconcile(self, connection: Connection, dry_run: bool) -> NoReturn:
        """Not served."""
        _unsupported("reconcile")

    def verifyFabric(self, connection: Connection) -> NoReturn:  # noqa: N802  Thrift's name
        """Not served."""
        _unsupported("verify")

    def journal(self, connection: Connection, after_sequence: int, limit: int) -> NoReturn:
        """Not served."""
        _unsupported("journal")

    # --------------------------------------------------------------------------------------------- inside

    def disconnected(self, connection: Connection) -> None:
        """A client is gone: what it waited for with `request` is given up after a grace."""

        def work(turn: Turn) -> None:
            for request in self._waiting_for_grant.pop(connection.id, ()):
                # The client may have come back on another connection before this one was seen to be dead.
                if not any(request in others for others in self._waiting_for_grant.values()):
                    turn.handle(ClientVanished(request))

        self._runtime.call(work)

    def _change(self, key: str, event: FinishAsked | WithdrawAsked) -> Future[ttypes.RequestStatus]:
        def work(turn: Turn) -> ttypes.RequestStatus:
            turn.handle(event)
            return _status(turn, event.request)

        return self._do(work)

    def _do(self, work: Callable[[Turn], T | Future[T]]) -> Future[T]:
        return convert.with_thrift_errors(self._runtime.call(work))


def _id(key: str | None) -> RequestKey:
    return (DEFAULT_TENANT, key or "")


def _status(turn: Turn, request: RequestKey) -> ttypes.RequestStatus:
    return convert.status(turn.core, turn.core.request(request), turn.now)


def _not_yet(turn: Turn, request: Request) -> NotYet:
    reasons = [turn.core.reason(request, part) for part in request.parts]
    return NotYet(" ".join(reason for reason in reasons if reason) or "Nothing happened within the time given.")


def _seconds(milliseconds: int | None) -> float:
    if milliseconds is None or milliseconds < 0:
        raise ttypes.NotYet("Give the time to wait, in milliseconds, not negative.")
    return min(milliseconds / 1000, LONGEST_WAIT)


def _unsupported(feature: str) -> NoReturn:
    raise ttypes.Unsupported(
        feature, f"This server does not serve the feature {feature!r}; version() lists what it serves."
    )
