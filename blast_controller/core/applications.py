"""Requests of applications: submit, extend, finish, withdraw, disconnect. A rejected one changes nothing."""

from __future__ import annotations

from blast_controller.core.lifecycle.admission_control import AdmissionControl
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.model.errors import KeyReusedError, RejectedError, RequestEndedError
from blast_controller.core.model.events import (
    ClientsVanished,
    ExtendRequested,
    FinishRequested,
    ProgressReported,
    RequestSubmitted,
    WithdrawRequested,
)
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.requests import EventKind, MulticastRequest, Part, Request
from blast_controller.core.placing.lighting import Lighting
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.requests.request_table import RequestTable, is_ungranted
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservations import Reservations


class Extensions:
    """Changes of active parts."""

    def __init__(
        self, reservations: Reservations, layouts: LayoutPlanner, limits: SplitterLimits, lighting: Lighting
    ) -> None:
        self._reservations, self._layouts, self._limits, self._lighting = reservations, layouts, limits, lighting

    def begin(self, request: Request, part: Part, requested: MulticastRequest, added: float, now: float) -> None:
        """Change the only part of a request to `requested`; add `added` seconds to its lease. Raises RejectedError."""
        reservation = self._lit_reservation(part)
        target = self._layouts.extended(reservation.layout, requested, reservation.group_address)
        self._limits.check_change(reservation, target, now)
        self._lighting.change(request, reservation, Change(target, requested, added), now)

    def _lit_reservation(self, part: Part) -> Reservation:
        reservation = self._reservations.live[part.reservation] if part.reservation is not None else None
        if reservation is None or reservation.busy:
            raise RejectedError(
                "busy", "The light tree is being set up or changed; try again when the change is complete."
            )
        return reservation


class Applications:
    """Handles applications' events."""

    def __init__(
        self, table: RequestTable, admission: AdmissionControl, endings: Endings, extensions: Extensions
    ) -> None:
        self._table, self._admission, self._endings, self._extensions = table, admission, endings, extensions

    def on_submitted(self, event: RequestSubmitted, now: float) -> None:
        """Handle a new or repeated request. Raises RejectedError, KeyReusedError."""
        submitted = event.request
        known = self._table.requests.get(submitted.id)
        if known is not None:
            if known.content != submitted:
                raise KeyReusedError(submitted.key)
            known.vanished_at = None
            if known.attached and not event.attached:
                # `submit` keeps the request even if clients that wait for it on a connection disconnect.
                known.attached = False
                self._table.touch(known, "stays")
            return
        self._admission.check_new(submitted)
        self._table.add(submitted, event.attached, now)

    def on_extension(self, event: ExtendRequested, now: float) -> None:
        """Change a request. Raises RejectedError, RequestEndedError, UnknownRequestError."""
        request = self._table.get_unended(event.request)
        if len(request.parts) > 1:
            raise RejectedError(
                "several_parts",
                "The request is served in several parts, so it cannot be changed; "
                "submit another request for further receivers.",
            )
        (part,) = request.parts
        extended = self._admission.extended(request.current, part, event.extension)
        if part.state is PartState.PENDING:
            self._admission.check_feasible(extended)
            request.current, part.receivers = extended, extended.receivers
            part.extra_lease += event.extension.add_seconds
            self._table.publish(request, part, EventKind.CHANGED)
            return
        self._extensions.begin(request, part, extended, event.extension.add_seconds, now)

    def on_progress(self, event: ProgressReported, now: float) -> None:
        """Record the progress that a sender reports. Raises RejectedError, RequestEndedError, UnknownRequestError."""
        request = self._table.get_unended(event.request)
        part = _part_of(request, event.part)
        if part.state.final:
            raise RequestEndedError(part.state.value, part.reason or "")
        if not part.reached <= event.reached <= request.current.bytes:
            raise RejectedError(
                "bad_extension",
                f"The progress must be from byte {part.reached} (as reported before) to {request.current.bytes}, "
                f"not {event.reached}.",
            )
        part.reached, part.reported = event.reached, True
        self._table.touch(request, "progress")

    def on_finish(self, event: FinishRequested, now: float) -> None:
        """Finish a part. Raises RejectedError, RequestEndedError, UnknownRequestError."""
        request = self._table.get(event.request)
        part = _part_of(request, event.part)
        if part.state is PartState.DONE:
            return
        if part.state.final:
            raise RequestEndedError(part.state.value, part.reason or "")
        if part.state is not PartState.ACTIVE:
            raise RejectedError(
                "not_active", f"Part {event.part} is {part.state.value}: only an active part can be finished."
            )
        part.report = event.report.about(part.receivers) if event.report is not None else None
        self._endings.end(request, part, PartEvent.FINISHED, "The sender has finished.", now)

    def on_withdraw(self, event: WithdrawRequested, now: float) -> None:
        """Withdraw a request. Raises RequestEndedError, UnknownRequestError."""
        if self._table.get(event.request).state is PartState.WITHDRAWN:
            return
        request = self._table.get_unended(event.request)
        self._endings.end_all(request, PartEvent.WITHDRAWN, f"Withdrawn by {event.by}.", now)

    def on_vanished(self, event: ClientsVanished, now: float) -> None:
        """Start the grace period of clients that disconnected while they waited for grants."""
        for name in event.requests:
            request = self._table.requests.get(name)
            if request is not None and request.attached and is_ungranted(request):
                self._table.vanish(request, now)


def _part_of(request: Request, number: int) -> Part:
    if not 0 <= number < len(request.parts):
        raise RejectedError("unknown_part", f"The request has no part {number}.")
    return request.parts[number]
