"""How many splitters tenants may hold: in all, and besides those that they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.quota import Quota
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations

NO_LIGHT = -1
"""In place of a number: the tenant has used up its light for this hour, and may not even have a circuit."""


class SplitterLimits:
    """Numbers by tenant; those that are not limited are not named."""

    def __init__(self, orders: StandingOrders, quota: Quota, reservations: Reservations) -> None:
        self._orders = orders
        self._quota = quota
        self._reservations = reservations

    def in_all(self, now: float) -> dict[str, int]:
        """How many each tenant may hold, as the policy counts: what is being given back is not of its giving."""
        if not self._orders.settings.tenants:
            return {}
        live = self._reservations.live.values()
        leaving = Counter[str]()
        for reservation in live:
            if reservation.state is ReservationState.RELEASING:
                leaving[reservation.request[0]] += reservation.splitters
        return self._without(leaving, now)

    def left(self, now: float) -> dict[str, int]:
        """How many more each tenant may hold."""
        return self._without(self._held(), now) if self._orders.settings.tenants else {}

    def held(self, tenant: str) -> int:
        """How many a tenant holds."""
        return self._held()[tenant]

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
