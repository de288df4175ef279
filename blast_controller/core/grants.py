"""Grants: what a client is told when its part is lit."""

from __future__ import annotations

from blast_controller.core.model.lease_terms import lease_of, rate_of, service_of
from blast_controller.core.model.requests import Grant, Part, Request, Timings
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.state import State


def make_grant(state: State, request: Request, part: Part, reservation: Reservation, now: float) -> Grant:
    """The permission that a part gets when its reservation is lit or changed."""
    waiting = [p for p in request.parts if not p.state.final and p.grant is None and p is not part]
    return Grant(
        part=part.index,
        receivers=part.receivers,
        group_address=reservation.group_address,
        group_port=state.orders.settings.group_port,
        rate=rate_of(request.current, state.fabric),
        estimated_service=service_of(request.current, part, state.fabric),
        lease=lease_of(request.current, part, state.fabric, state.orders.settings),
        first_byte=part.reached,
        unserved=tuple(host for p in waiting for host in p.receivers),
        reservation=reservation.id,
        timings=_timings(request, reservation, now),
        margins=state.budget.margins(tree) if (tree := reservation.layout.tree) is not None else (),
    )


def _timings(request: Request, reservation: Reservation, now: float) -> Timings:
    timed = [(target.device, target.elapsed) for target in reservation.rollout.targets.values()]
    tors = [seconds for device, seconds in timed if seconds is not None and isinstance(device, int)]
    switches = [seconds for device, seconds in timed if seconds is not None and isinstance(device, str)]
    total = now - request.received_at
    return Timings(reservation.rollout.compute, max(tors, default=None), max(switches, default=None), total)
