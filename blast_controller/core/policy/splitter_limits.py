"""Limits of splitters by tenant: in total, and beyond those held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from blast_controller.core.light.layout import Layout
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.identifiers import ElementId, is_splitter
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.quota import Quota
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservations import Reservations

NO_LIGHT = -1
"""Instead of a number: the tenant has used its quota of lit time for this hour and may not even have a circuit."""


class SplitterLimits:
    """Limits by tenant; tenants without a limit are missing."""

    def __init__(self, orders: StandingOrders, quota: Quota, reservations: Reservations) -> None:
        self._orders = orders
        self._quota = quota
        self._reservations = reservations

    def in_all(self, now: float) -> dict[str, int]:
        """Return the total limit of each tenant as the policy counts; it does not count splitters being released."""
        if not self._orders.settings.tenants:
            return {}
        leaving = Counter[str]()
        for reservation in self._reservations.releasing.values():
            leaving[reservation.request[0]] += reservation.splitters
        return self._without(leaving, now)

    def left(self, now: float) -> dict[str, int]:
        """Return how many more splitters each tenant may hold."""
        return self._without(self._held(), now) if self._orders.settings.tenants else {}

    def allow(self, tenant: str, splitters: int, now: float) -> bool:
        """Return true if a tenant may hold this many more splitters."""
        left = self.left(now).get(tenant)
        return left is None or splitters <= left

    def max_splitters(self, tenant: str) -> int | None:
        """Return the tenant's total limit, or None."""
        return self._orders.limits(tenant).max_splitters

    def light_used_up(self, tenant: str, now: float) -> bool:
        """Return true if a tenant has used its quota of lit time."""
        return self._quota.exhausted(tenant, now)

    def held_by(self, tenant: str) -> dict[int, list[ElementId]]:
        """Return the splitters that count toward a tenant's limit, by reservation."""
        mine = [r for r in self._reservations.live.values() if r.request[0] == tenant and r.splitters]
        held = {r.id: sorted(element for element in r.elements if is_splitter(element)) for r in mine}
        return {number: elements for number, elements in held.items() if elements}

    def check_change(self, reservation: Reservation, target: Layout, now: float) -> None:
        """Raise RejectedError if a change to `target` exceeds the tenant's limit of splitters or quota of lit time."""
        tenant = reservation.request[0]
        limit = self.max_splitters(tenant)
        more = sum(is_splitter(element) for element in target.elements - reservation.elements)
        if more and limit is not None and self._held()[tenant] + more > limit:
            raise RejectedError(
                "too_many_splitters",
                f"The change exceeds the limit of {limit} splitters of the tenant {tenant}; "
                "release other grants first.",
            )
        if target.tree is not None and reservation.layout.tree is None and self.light_used_up(tenant, now):
            raise RejectedError(
                "light_used_up", f"The tenant {tenant} has used its quota of lit time for this hour; try again later."
            )

    def _held(self) -> Counter[str]:
        found = Counter[str]()
        for reservation in self._reservations.live.values():
            found[reservation.request[0]] += reservation.splitters
        return found

    def _without(self, counted: Mapping[str, int], now: float) -> dict[str, int]:
        limits: dict[str, int] = {}
        for tenant, found in self._orders.settings.tenants.items():
            if self._quota.exhausted(tenant, now):
                limits[tenant] = NO_LIGHT
            elif found.max_splitters is not None:
                limits[tenant] = max(0, found.max_splitters - counted[tenant])
        return limits
