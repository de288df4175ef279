"""Log lines for activity in the machine room: grants, changes, releases, failures, drift, disconnected ToRs.

The functions that build a line are pure; `write_line` writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    PortChanged,
    StepFailed,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, ElementId, SwitchId, device_name
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, Grant, RequestEvent, RequestKey
from blast_controller.core.rollout.late_writes import NO_RESERVATION
from blast_controller.ops.drift import foreign_circuits
from blast_controller.ops.logging import fields

log = logging.getLogger("blast.activity")


@dataclass(frozen=True)
class LogLine:
    """A log line: `known` are its fields beside the event's name."""

    level: int
    event: str
    message: str
    known: Mapping[str, object]


def write_line(line: LogLine | None) -> None:
    """Write a line, if there is one to write."""
    if line is not None:
        log.log(line.level, line.message, extra=fields(event=line.event, **line.known))


# --------------------------------------------------------------------------------------------------- requests


def request_line(request: RequestKey, event: RequestEvent) -> LogLine:
    """Build the line for an event of a request."""
    tenant, key = request
    level, name, message, more = _REQUEST_LINES[event.kind](key, event)
    known = {"tenant": tenant, "request": key, "part": event.part, "reason": event.reason, **more}
    if event.grant is not None:
        known["reservation"] = event.grant.reservation
    return LogLine(level, name, message, known)


_Line = tuple[int, str, str, Mapping[str, object]]


def _granted(key: str, event: RequestEvent) -> _Line:
    assert event.grant is not None
    took = event.grant.timings.total * 1000
    message = f"granted {key}: {_described(event.grant)}, {took:.1f} ms after the request"
    return logging.INFO, "grant", message, {**_grant_fields(event.grant), "total_ms": round(took, 3)}


def _changed(key: str, event: RequestEvent) -> _Line:
    if event.reason is not None:
        return logging.WARNING, "failure", f"change of {key} undone: {event.reason}", {}
    if event.grant is None:
        return logging.INFO, "change", f"changed {key}; it is pending", {}
    return logging.INFO, "change", f"changed {key}: {_described(event.grant)}", _grant_fields(event.grant)


def _paused(key: str, event: RequestEvent) -> _Line:
    return logging.INFO, "pause", f"paused {key}: {event.reason}", {}


def _revoked(key: str, event: RequestEvent) -> _Line:
    return logging.WARNING, "revoke", f"revoked the grant of {key}: {event.reason}", {}


def _ended(key: str, event: RequestEvent) -> _Line:
    state = event.state.value if event.state is not None else "ended"
    if event.state is PartState.FAILED:
        return logging.WARNING, "failure", f"failed {key}: {event.reason}", {"state": state}
    return logging.INFO, "release", f"released {key} ({state}): {event.reason}", {"state": state}


_REQUEST_LINES: dict[EventKind, Callable[[str, RequestEvent], _Line]] = {
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


def late_line(command: SetCircuits) -> LogLine | None:
    """Build the line for the removal of late cross-connects; None if there are none."""
    late = [
        circuit for change in command.changes if change.reservation == NO_RESERVATION for circuit in change.disconnect
    ]
    if not late:
        return None
    name, circuits = device_name(command.switch), ", ".join(f"{c.input} to {c.output}" for c in late)
    message = f"{name} made cross-connects from a late command of an earlier controller or session; removed {circuits}"
    return LogLine(logging.WARNING, "late_write", message, {"device": name, "circuits": circuits})


@singledispatch
def device_line(event: object) -> LogLine | None:
    """Build the line for an event of a device; None for routine events."""
    return None


@device_line.register
def _(event: StepFailed) -> LogLine:
    known = {"device": device_name(event.device), "reservation": event.reservation, "reason": event.reason}
    return LogLine(logging.WARNING, "failure", f"{device_name(event.device)} failed a step: {event.reason}", known)


@device_line.register
def _(event: DeviceConnected) -> LogLine | None:
    # The optical executor logs the events of its switches itself.
    if isinstance(event.device, str):
        return None
    name = device_name(event.device)
    return LogLine(logging.INFO, "device_up", f"{name} is connected", {"device": name})


@device_line.register
def _(event: DeviceDisconnected) -> LogLine | None:
    if isinstance(event.device, str):
        return None
    name = device_name(event.device)
    known = {"device": name, "reason": event.reason}
    return LogLine(logging.WARNING, "device_down", f"{name} is disconnected: {event.reason}", known)


@device_line.register
def _(event: PortChanged) -> LogLine:
    name = f"{device_name(event.datapath)} port {event.port}"
    known = {"device": device_name(event.datapath), "port": event.port, "reason": event.reason or None}
    if event.up:
        return LogLine(logging.INFO, "port_up", f"{name} link up", known)
    return LogLine(logging.WARNING, "port_down", f"{name} link down", known)


# ------------------------------------------------------------------------------------------------------ drift


class DriftWatch:
    """Builds lines for foreign state on devices: only when it changes."""

    def __init__(self) -> None:
        self._rules: dict[DatapathId, int] = {}
        self._occupied: dict[SwitchId, Mapping[ElementId, CrossConnect]] = {}

    def rules(self, datapath: DatapathId, foreign: int) -> LogLine | None:
        """Handle the number of foreign rules on a ToR.

        They include the packet network's own rules, so this is no fault.
        """
        before, self._rules[datapath] = self._rules.get(datapath, 0), foreign
        if foreign == before:
            return None
        name = device_name(datapath)
        message = f"drift: {name} holds {foreign} rules that Blast did not create"
        return LogLine(logging.INFO, "drift", message, {"device": name, "foreign": foreign})

    def occupied(self, switch: SwitchId, occupied: Mapping[ElementId, CrossConnect]) -> LogLine | None:
        """Handle the elements of an optical switch that foreign cross-connects occupy."""
        before, self._occupied[switch] = self._occupied.get(switch, {}), dict(occupied)
        if occupied == before:
            return None
        known = {"device": device_name(switch), "foreign": len(occupied)}
        if not occupied:
            message = f"drift: the optical switch {switch} has only circuits that this controller set"
            return LogLine(logging.INFO, "drift", message, known)
        return LogLine(logging.WARNING, "drift", f"drift: {foreign_circuits(switch, occupied)}", known)
