"""Grants: what a client is told when its part is lit."""

from __future__ import annotations

from blast_controller.core.requests import Grant, Part, Request, Timings
from blast_controller.core.reservation import Reservation
from blast_controller.core.state import State

LEASE_MARGIN = 0.1
"""Seconds that a lease of a part that may be paused is longer than what is to be sent in it takes."""


def make_grant(state: State, request: Request, part: Part, reservation: Reservation, now: float) -> Grant:
    """The permission that a part gets when its reservation is lit or changed."""
    rate = _rate(state, request)
    service = max(0, request.current.bytes - part.reached) * 8 / rate
    waiting = [p for p in request.parts if not p.state.final and p.grant is None and p is not part]
    return Grant(
        part=part.index,
        receivers=part.receivers,
        group_address=reservation.group_address,
        group_port=state.settings.group_port,
        rate=rate,
        estimated_service=service,
        lease=lease_of(state, request, part),
        first_byte=part.reached,
        unserved=tuple(host for p in waiting for host in p.receivers),
        reservation=reservation.id,
        timings=_timings(request, reservation, now),
        margins=state.budget.margins(tree) if (tree := reservation.layout.tree) is not None else (),
    )


def lease_of(state: State, request: Request, part: Part) -> float:
    """Seconds for which a part would be granted its light now."""
    rate = _rate(state, request)
    sent = part.reached if request.current.may_pause else 0
    service = max(0, request.current.bytes - sent) * 8 / rate
    if part.chunk is not None:
        return part.chunk + LEASE_MARGIN
    return max(state.settings.lease_minimum, service * state.settings.lease_factor) + part.extra_lease


def _rate(state: State, request: Request) -> float:
    return min(state.fabric.light_rate, request.current.highest_rate or state.fabric.light_rate)


def _timings(request: Request, reservation: Reservation, now: float) -> Timings:
    tors = [seconds for device, seconds in reservation.elapsed.items() if isinstance(device, int)]
    switches = [seconds for device, seconds in reservation.elapsed.items() if isinstance(device, str)]
    total = now - request.received_at
    return Timings(reservation.compute, max(tors, default=None), max(switches, default=None), total)
