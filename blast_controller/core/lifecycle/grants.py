"""Grants: the notification of the client when its part is lit, and the lease."""

from __future__ import annotations

from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.lease_terms import lease_of, rate_of, service_of
from blast_controller.core.model.requests import EventKind, Grant, Part, Request, Timings
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservations import Reservations


class Grants:
    """Issues grants with their leases and notifies clients."""

    def __init__(
        self,
        fabric: Fabric,
        orders: StandingOrders,
        budget: LightBudget,
        table: RequestTable,
        reservations: Reservations,
    ) -> None:
        self._fabric, self._orders, self._budget = fabric, orders, budget
        self._table, self._reservations = table, reservations

    def give(self, request: Request, part: Part, now: float, kind: EventKind = EventKind.GRANTED) -> None:
        """Grant a lit part: its lease begins."""
        part.reported = False
        part.grant = self._made(request, part, now)
        self._table.lease(request, part, now + part.grant.lease)
        self._table.publish(request, part, kind, grant=part.grant)

    def go_on(self, request: Request, part: Part, now: float) -> None:
        """Renew the lease of a part."""
        self.give(request, part, now, EventKind.CHANGED)

    def change(self, request: Request, part: Part, now: float) -> None:
        """Record the change of a part: more bytes and more time both lengthen the lease, counted from its start."""
        lease_before = part.grant.lease if part.grant else 0.0
        part.grant = self._made(request, part, now)
        longer = max(0.0, part.grant.lease - lease_before)
        self._table.lease(request, part, (part.lease_end or now) + longer)
        self._table.publish(request, part, EventKind.CHANGED, grant=part.grant)

    def _made(self, request: Request, part: Part, now: float) -> Grant:
        reservation = self._reservations.live[part.reservation or 0]
        waiting = [p for p in request.parts if not p.state.final and p.grant is None and p is not part]
        return Grant(
            part=part.index,
            receivers=part.receivers,
            group_address=reservation.group_address,
            group_port=self._orders.settings.group_port,
            rate=rate_of(request.current, self._fabric),
            estimated_service=service_of(request.current, part, self._fabric),
            lease=lease_of(request.current, part, self._fabric, self._orders.settings),
            first_byte=part.reached,
            unserved=tuple(host for p in waiting for host in p.receivers),
            reservation=reservation.id,
            timings=_timings(request, reservation, now),
            margins=self._budget.margins(tree) if (tree := reservation.layout.tree) is not None else (),
        )


def _timings(request: Request, reservation: Reservation, now: float) -> Timings:
    timed = [(target.device, target.elapsed) for target in reservation.rollout.targets.values()]
    tors = [seconds for device, seconds in timed if seconds is not None and isinstance(device, int)]
    switches = [seconds for device, seconds in timed if seconds is not None and isinstance(device, str)]
    total = now - request.received_at
    return Timings(reservation.rollout.compute, max(tors, default=None), max(switches, default=None), total)
