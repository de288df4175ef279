"""What happens in the machine room, one log line each: grants, changes, releases, failures, drift, ToRs that go away.

The functions that make a line are pure; `tell` writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import singledispatch

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import (
    DeviceDown,
    DeviceUp,
    PortChanged,
    StepFailed,
)
from blast_controller.core.model.identifiers import DatapathId, SwitchId, device_name
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, Grant, RequestEvent, RequestKey
from blast_controller.core.rollout.late_writes import NOBODY
from blast_controller.ops.logging import fields

log = logging.getLogger("blast.activity")


@dataclass(frozen=True)
class Line:
    """A log line: `known` are its fields beside the event's name."""

    level: int
    event: str
    message: str
    known: Mapping[str, object]


def tell(line: Line | None) -> None:
    """Write a line, if there is one to write."""
    if line is not None:
        log.log(line.level, line.message, extra=fields(event=line.event, **line.known))


# --------------------------------------------------------------------------------------------------- requests


def request_line(request: RequestKey, event: RequestEvent) -> Line:
    """What happened to a request."""
    tenant, key = request
    level, name, message, more = _REQUEST_LINES[event.kind](key, event)
    known = {"tenant": tenant, "request": key, "part": event.part, "reason": event.reason, **more}
    if event.grant is not None:
        known["reservation"] = event.grant.reservation
    return Line(level, name, message, known)


_Told = tuple[int, str, str, Mapping[str, object]]


def _granted(key: str, event: RequestEvent) -> _Told:
    assert event.grant is not None
    took = event.grant.timings.total * 1000
    message = f"granted {key}: {_described(event.grant)}, {took:.1f} ms after the request"
    return logging.INFO, "grant", message, {**_grant_fields(event.grant), "total_ms": round(took, 3)}


def _changed(key: str, event: RequestEvent) -> _Told:
    if event.reason is not None:
        return logging.WARNING, "failure", f"change of {key} undone: {event.reason}", {}
    if event.grant is None:
        return logging.INFO, "change", f"changed {key}, which waits for light", {}
    return logging.INFO, "change", f"changed {key}: {_described(event.grant)}", _grant_fields(event.grant)


def _paused(key: str, event: RequestEvent) -> _Told:
    return logging.INFO, "pause", f"paused {key}: {event.reason}", {}


def _revoked(key: str, event: RequestEvent) -> _Told:
    return logging.WARNING, "revoke", f"revoked the grant of {key}: {event.reason}", {}


def _ended(key: str, event: RequestEvent) -> _Told:
    state = event.state.value if event.state is not None else "ended"
    if event.state is PartState.FAILED:
        return logging.WARNING, "failure", f"gave up {key}: {event.reason}", {"state": state}
    return logging.INFO, "release", f"released {key} ({state}): {event.reason}", {"state": state}


_REQUEST_LINES: dict[EventKind, Callable[[str, RequestEvent], _Told]] = {
    EventKind.GRANTED: _granted,
    EventKind.CHANGED: _changed,
    EventKind.PAUSED: _paused,
    EventKind.REVOKED: _revoked,
    EventKind.ENDED: _ended,
}


def _described(grant: Grant) -> str:
    return f"group {grant.group_address}, {len(grant.receivers)} receivers, reservation {grant.reservation}"


def _grant_fields(grant: Grant) -> Mapping[str, object]:
    return {
        "group": grant.group_address,
        "receivers": len(grant.receivers),
        "lease_ms": round(grant.lease * 1000),
    }


# ---------------------------------------------------------------------------------------------------- devices


def late_line(command: SetCircuits) -> Line | None:
    """What is taken off a switch because it came there late; None where there is nothing of the kind."""
    late = [circuit for change in command.changes if change.reservation == NOBODY for circuit in change.disconnect]
    if not late:
        return None
    name, told = device_name(command.switch), ", ".join(f"{c.input} to {c.output}" for c in late)
    message = f"{name} has made cross-connects that an earlier controller or session sent it: {told} taken away again"
    return Line(logging.WARNING, "late_write", message, {"device": name, "circuits": told})


@singledispatch
def device_line(event: object) -> Line | None:
    """What a device did; None for what is daily routine."""
    return None


@device_line.register
def _(event: StepFailed) -> Line:
    known = {"device": device_name(event.device), "reservation": event.reservation, "reason": event.reason}
    return Line(logging.WARNING, "failure", f"{device_name(event.device)} failed a step: {event.reason}", known)


@device_line.register
def _(event: DeviceUp) -> Line | None:
    # The optical executor tells of its switches itself.
    if isinstance(event.device, str):
        return None
    name = device_name(event.device)
    return Line(logging.INFO, "device_up", f"{name} is connected", {"device": name})


@device_line.register
def _(event: DeviceDown) -> Line | None:
    if isinstance(event.device, str):
        return None
    name = device_name(event.device)
    known = {"device": name, "reason": event.reason}
    return Line(logging.WARNING, "device_down", f"{name} is disconnected: {event.reason}", known)


@device_line.register
def _(event: PortChanged) -> Line:
    name = f"{device_name(event.datapath)} port {event.port}"
    known = {"device": device_name(event.datapath), "port": event.port, "reason": event.reason or None}
    if event.up:
        return Line(logging.INFO, "port_up", f"{name} has its link", known)
    return Line(logging.WARNING, "port_down", f"{name} has lost its link", known)


# ------------------------------------------------------------------------------------------------------ drift


class DriftWatch:
    """Tells of what is on devices and not of our making: once when its amount changes, not at each look."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def rules(self, datapath: DatapathId, foreign: int) -> Line | None:
        """A ToR holds so many rules without our cookie. The packet network's own are among them: no fault."""
        return self._line(logging.INFO, device_name(datapath), foreign, f"{foreign} rules that Blast did not make")

    def occupied(self, switch: SwitchId, elements: Collection[str]) -> Line | None:
        """Cross-connects of somebody else's occupy these elements on an optical switch."""
        what = f"cross-connects that Blast did not make on {', '.join(sorted(elements)) or 'no element'}"
        return self._line(logging.WARNING, device_name(switch), len(elements), what)

    def _line(self, level: int, device: str, amount: int, what: str) -> Line | None:
        before, self._seen[device] = self._seen.get(device, 0), amount
        if amount == before:
            return None
        known = {"device": device, "foreign": amount}
        return Line(level if amount > before else logging.INFO, "drift", f"drift: {device} holds {what}", known)
