"""Between Thrift's structs and the core's types, with nothing decided here but what a missing field means."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TypeVar

from blast_api import ttypes
from blast_controller.core.auditor import AuditReport
from blast_controller.core.explanation import Explanation
from blast_controller.core.fiber_check import FiberReport
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model import errors
from blast_controller.core.model.identifiers import device_name
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import (
    EventKind,
    Extension,
    Grant,
    LeafMargin,
    MulticastRequest,
    RequestEvent,
    Timings,
    TransferReport,
)
from blast_controller.core.snapshot.facts import PartFacts, RequestFacts
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.rpc.connections.messages import RefusalErrors
from blast_controller.runtime.parked_future import ParkedFuture
from blast_controller.runtime.runtime import PublishedState

T = TypeVar("T")

MAX_MARGINS = 500
"""In one grant, so that it stays well below the frame cap, too: of the leaves with the smallest margins."""
LARGEST_I64 = (1 << 63) - 1
"""Times without an end are the largest number of the interface."""


def bad_text(field: str, sentence: str) -> ttypes.Rejected:
    """Return the refusal of a text that is not UTF-8."""
    return ttypes.Rejected("bad_key" if field == "key" else "bad_text", sentence)


REFUSALS = RefusalErrors(ttypes.Denied, bad_text)

# ------------------------------------------------------------------------------------------------ from Thrift


def to_request(struct: ttypes.MulticastRequest | None, tenant: str) -> MulticastRequest:
    """Return the request that a client sent, for `tenant`. Raises Rejected."""
    if struct is None:
        raise ttypes.Rejected("bad_request", "The request is missing.")
    return MulticastRequest(
        key=struct.key,
        tenant=tenant,
        sender=struct.sender,
        receivers=tuple(struct.receivers),
        bytes=struct.bytes,
        max_rate=_optional_float(struct.maxBitsPerSecond),
        pending_timeout=None if struct.pendingTimeoutMs is None else struct.pendingTimeoutMs / 1000,
        deadline=None if struct.deadlineMs is None else struct.deadlineMs / 1000,
        priority=struct.priority or 0,
        may_split=bool(struct.maySplit),
        may_pause=bool(struct.mayPause),
    )


def to_progress(struct: ttypes.Extension | None) -> tuple[int, int] | None:
    """Return the progress in an extension as (part, byte), or None. Raises Rejected."""
    if struct is None or struct.progressBytes is None:
        return None
    if to_extension(struct) != Extension():
        raise ttypes.Rejected("bad_extension", "progressBytes cannot be combined with changes: use a separate call.")
    return struct.part or 0, struct.progressBytes


def to_extension(struct: ttypes.Extension | None) -> Extension:
    """Return the extension that a client sent."""
    if struct is None:
        return Extension()
    return Extension(
        add_receivers=tuple(struct.addReceivers or ()),
        remove_receivers=tuple(struct.removeReceivers or ()),
        add_seconds=(struct.addLeaseMs or 0) / 1000,
        add_bytes=struct.addBytes or 0,
    )


def to_transfer_report(struct: ttypes.TransferReport | None) -> TransferReport | None:
    """Convert a client's report; None if it is empty. Negative counts are ignored."""
    if struct is None:
        return None
    duration = _count(struct.durationMs)
    report = TransferReport(
        bytes_sent=_count(struct.bytesSent),
        duration=None if duration is None else duration / 1000,
        bytes_repaired=_count(struct.repairedBytes),
        failed_receivers=tuple(struct.failedReceivers or ()),
    )
    return report if report != TransferReport() else None


# -------------------------------------------------------------------------------------------------- to Thrift


def grant(key: str, found: Grant, max_margins: int = MAX_MARGINS) -> ttypes.Grant:
    """Convert a grant with at most `max_margins` margins."""
    return ttypes.Grant(
        key=key,
        part=found.part,
        receivers=list(found.receivers),
        groupAddress=found.group_address,
        groupPort=found.group_port,
        rateBitsPerSecond=int(found.rate),
        estimatedServiceMs=_whole_ms(found.estimated_service),
        leaseMs=_whole_ms(found.lease),
        firstByte=found.first_byte,
        pendingReceivers=list(found.unserved),
        reservation=found.reservation,
        timings=_timings(found.timings),
        margins=[_margin(margin) for margin in found.margins[:max_margins]] or None,
    )


def _margin(found: LeafMargin) -> ttypes.LeafMargin:
    return ttypes.LeafMargin(
        rack=found.rack,
        receivedDbm=found.received,
        sensitivityMarginDb=found.sensitivity,
        overloadMarginDb=found.overload,
        minDbm=found.min_power,
        maxDbm=found.max_power,
        limitingElement=found.binding,
    )


def _timings(found: Timings) -> ttypes.StepTimings:
    return ttypes.StepTimings(_ms(found.compute), _ms(found.openflow), _ms(found.optical), _ms(found.total))


def event(key: str, found: RequestEvent) -> ttypes.Event:
    """Return an event."""
    return ttypes.Event(
        sequence=found.sequence,
        kind=ttypes.EventKind._NAMES_TO_VALUES[found.kind.name],
        part=found.part,
        grant=grant(key, found.grant) if found.grant else None,
        reason=found.reason,
        state=state_number(found.state) if found.state else None,
    )


def refuse_failed_change(found: RequestEvent) -> None:
    """Raise the error of an `extend` whose change was not made."""
    if found.kind is EventKind.ENDED and found.state is not None:
        raise errors.RequestEndedError(found.state.value, found.reason or "")
    if found.kind is EventKind.REVOKED:
        raise errors.RejectedError("light_lost", f"The grant was revoked before the change was made: {found.reason}.")
    if found.reason is not None:
        raise errors.RejectedError("device_failed", f"The change failed and was undone: {found.reason}.")


Reasons = Callable[[PartFacts], str | None]


def status(
    request: RequestFacts, look: PublishedState, reasons: Reasons, max_margins: int = MAX_MARGINS
) -> ttypes.RequestStatus:
    """Convert the status of a request, with at most `max_margins` margins of each part.

    `reasons` has the reasons of parts.
    """
    now = look.now
    current = request.current
    return ttypes.RequestStatus(
        key=current.key,
        tenant=current.tenant,
        state=state_number(request.state),
        sender=current.sender,
        receivers=list(current.receivers),
        bytes=current.bytes,
        ageMs=round((now - request.received_at) * 1000),
        parts=[_part(request.current.key, part, reasons(part), now, max_margins) for part in request.parts],
        latestSequence=request.latest_event,
        staleMs=stale(look),
        journalSequence=look.sequence,
    )


def stale(look: PublishedState) -> int | None:
    """Return the age of the data in milliseconds; None if it is current."""
    return None if look.stale is None else _whole_ms(look.stale)


def _part(key: str, part: PartFacts, reason: str | None, now: float, max_margins: int) -> ttypes.PartStatus:
    return ttypes.PartStatus(
        part=part.number,
        state=state_number(part.state),
        receivers=list(part.receivers),
        grant=grant(key, part.grant, max_margins) if part.grant else None,
        reason=reason,
        leaseLeftMs=None if part.lease_end is None else max(0, _whole_ms(part.lease_end - now)),
        report=_report(part.report) if part.report is not None else None,
    )


def _report(found: TransferReport) -> ttypes.TransferReport:
    return ttypes.TransferReport(
        bytesSent=found.bytes_sent,
        durationMs=None if found.duration is None else _whole_ms(found.duration),
        repairedBytes=found.bytes_repaired,
        failedReceivers=list(found.failed_receivers) or None,
    )


def explanation(found: Explanation) -> ttypes.Explanation:
    """Convert an explanation."""
    return ttypes.Explanation(
        key=found.key,
        message=found.sentence,
        blockers=list(found.blockers) or None,
        estimatedStartMs=None if found.start is None else _whole_ms(found.start),
        suggestion=found.smallest_change,
    )


def elements(snapshot: Snapshot) -> list[ttypes.ElementStatus]:
    """Return every piece of hardware and its state."""
    found = []
    for name in snapshot.units:
        holder, reason = snapshot.standing(name)
        state = "reserved" if holder is not None else "unusable" if reason else "free"
        if holder == PROBER:
            holder, reason = None, "being probed by `blast fabric verify`"
        found.append(ttypes.ElementStatus(name, state, reason, holder))
    for switch in snapshot.fabric.switches:
        away = snapshot.away.get(switch)
        found.append(ttypes.ElementStatus(device_name(switch), "disconnected" if away else "free", away))
    for datapath in sorted({rack.datapath for rack in snapshot.fabric.racks.values()}):
        away = snapshot.away.get(datapath)
        found.append(ttypes.ElementStatus(device_name(datapath), "disconnected" if away else "free", away))
    return found


def reconcile_report(report: AuditReport) -> ttypes.ReconcileReport:
    """Convert the report of a reconciliation."""
    not_compared = [ttypes.NotCompared(name, reason) for name, reason in report.not_compared]
    return ttypes.ReconcileReport(
        report.dry_run, list(report.commands), list(report.foreign), list(report.compared), not_compared
    )


def fiber_report(report: FiberReport) -> ttypes.FiberReport:
    """Convert the report of a fiber check."""
    faults = [ttypes.FiberFault(fault.element, fault.sentence) for fault in report.faults]
    return ttypes.FiberReport(faults, list(report.skipped), report.probed)


# ---------------------------------------------------------------------------------------------------- errors


@singledispatch
def to_thrift_error(error: BaseException) -> BaseException:
    """Convert a RequestError to its Thrift exception; other errors stay unchanged."""
    return error


@to_thrift_error.register
def _(error: errors.RejectedError) -> BaseException:
    return _typed(ttypes.Rejected(error.code, error.sentence, error.largest))


@to_thrift_error.register
def _(error: errors.UnknownRequestError) -> BaseException:
    return _typed(ttypes.UnknownRequest(error.key))


@to_thrift_error.register
def _(error: errors.KeyReusedError) -> BaseException:
    return _typed(ttypes.KeyReused(error.key))


@to_thrift_error.register
def _(error: errors.NotLeaderError) -> BaseException:
    return _typed(ttypes.NotLeader(error.address))


@to_thrift_error.register
def _(error: errors.RequestTimeoutError) -> BaseException:
    return _typed(ttypes.TimedOut(error.sentence))


@to_thrift_error.register
def _(error: errors.RequestEndedError) -> BaseException:
    return _typed(ttypes.Ended(ttypes.PartState._NAMES_TO_VALUES[error.state.upper()], error.reason))


def _typed(error: BaseException) -> BaseException:
    return error


class ThriftFuture(ParkedFuture[T]):
    """A future whose errors are Thrift exceptions."""

    def set_exception(self, exception: BaseException | None) -> None:
        """Set the converted exception."""
        super().set_exception(None if exception is None else to_thrift_error(exception))


def state_number(state: PartState) -> int:
    """Return Thrift's number of a state."""
    number: int = ttypes.PartState._NAMES_TO_VALUES[state.name]
    return number


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _whole_ms(seconds: float) -> int:
    return min(round(seconds * 1000), LARGEST_I64)


def _count(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def _optional_float(value: int | None) -> float | None:
    return None if value is None else float(value)
