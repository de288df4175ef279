"""How much light each tenant has used within the last hour, and who may have more."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from blast_controller.core.model.settings import TenantLimits

WINDOW = 3600.0
LOOK_AGAIN = 10.0
"""How often, in seconds, those who wait because their light is used up are considered again."""


class Quota:
    """Seconds of lit trees per tenant; a tree that is lit counts as it goes."""

    def __init__(self, limits: Callable[[str], TenantLimits]) -> None:
        self.limits = limits
        self._past: defaultdict[str, deque[tuple[float, float]]] = defaultdict(deque)
        self._lit: dict[int, tuple[str, float]] = {}

    def lit(self, reservation: int, tenant: str, now: float) -> None:
        """A tree of `tenant` is lit, from now on unless it was already."""
        self._lit.setdefault(reservation, (tenant, now))

    def dark(self, reservation: int, now: float) -> None:
        """A tree is lit no longer; one that never was does not count."""
        tenant, since = self._lit.pop(reservation, ("", now))
        if now > since:
            self._past[tenant].append((since, now))
            self._forget_old(tenant, now)

    def used(self, tenant: str, now: float) -> float:
        """Light-seconds of `tenant` within the last hour."""
        self._forget_old(tenant, now)
        spans = [*self._past[tenant], *((since, now) for owner, since in self._lit.values() if owner == tenant)]
        return sum(end - max(since, now - WINDOW) for since, end in spans)

    def _forget_old(self, tenant: str, now: float) -> None:
        past = self._past[tenant]
        while past and past[0][1] <= now - WINDOW:
            past.popleft()

    def exhausted(self, tenant: str, now: float) -> bool:
        """Whether `tenant` has used up its light for this hour."""
        most = self.limits(tenant).max_light_seconds
        return most is not None and self.used(tenant, now) >= most
