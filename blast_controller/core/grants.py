"""Grants: what a client is told when its part is lit."""

from __future__ import annotations

from blast_controller.core.requests import Grant, Part, Request, Timings
from blast_controller.core.reservation import Reservation
from blast_controller.core.state import State


def make_grant(state: State, request: Request, part: Part, reservation: Reservation, now: float) -> Grant:
    """The permission that a part gets when its reservation is lit or changed."""
    rate = min(state.fabric.light_rate, request.current.highest_rate or state.fabric.light_rate)
    service = request.current.bytes * 8 / rate
    lease = max(state.settings.lease_minimum, service * state.settings.lease_factor) + part.extra_lease
    waiting = [p for p in request.parts if not p.state.final and p.grant is None and p is not part]
    return Grant(
        part=part.index,
        receivers=part.receivers,
        group_address=reservation.group_address,
        group_port=state.settings.group_port,
        rate=rate,
        estimated_service=service,
        lease=lease,
        first_byte=0,
        unserved=tuple(host for p in waiting for host in p.receivers),
        reservation=reservation.id,
        timings=_timings(request, reservation, now),
    )


def _timings(request: Request, reservation: Reservation, now: float) -> Timings:
    tors = [seconds for device, seconds in reservation.elapsed.items() if isinstance(device, int)]
    switches = [seconds for device, seconds in reservation.elapsed.items() if isinstance(device, str)]
    total = now - request.received_at
    return Timings(reservation.compute, max(tors, default=None), max(switches, default=None), total)
