"""Lit time of each tenant within the last hour, and its quota."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from blast_controller.core.model.settings import TenantLimits

WINDOW = 3600.0
LOOK_AGAIN = 10.0
"""The interval, in seconds, at which parts of tenants with a used quota are examined again."""


class Quota:
    """Seconds of lit trees per tenant; a tree that is lit counts as it goes."""

    def __init__(self, limits: Callable[[str], TenantLimits]) -> None:
        self.limits = limits
        self._past: defaultdict[str, deque[tuple[float, float]]] = defaultdict(deque)
        self._lit: dict[int, tuple[str, float]] = {}

    def lit(self, reservation: int, tenant: str, now: float) -> None:
        """Start the lit time of a tree of `tenant`, unless it has started already."""
        self._lit.setdefault(reservation, (tenant, now))

    def dark(self, reservation: int, now: float) -> None:
        """End the lit time of a tree; one that was never lit does not count."""
        tenant, since = self._lit.pop(reservation, ("", now))
        if now > since:
            self._past[tenant].append((since, now))
            self._forget_old(tenant, now)

    def used(self, tenant: str, now: float) -> float:
        """Return the lit time of `tenant` in seconds within the last hour."""
        self._forget_old(tenant, now)
        spans = [*self._past[tenant], *((since, now) for owner, since in self._lit.values() if owner == tenant)]
        return sum(end - max(since, now - WINDOW) for since, end in spans)

    def _forget_old(self, tenant: str, now: float) -> None:
        past = self._past[tenant]
        while past and past[0][1] <= now - WINDOW:
            past.popleft()

    def exhausted(self, tenant: str, now: float) -> bool:
        """Return true if `tenant` has used its quota of lit time for this hour."""
        limit = self.limits(tenant).max_light_seconds
        return limit is not None and self.used(tenant, now) >= limit
