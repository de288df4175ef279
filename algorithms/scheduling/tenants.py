"""How much of the light each tenant has had, for policies that share it by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class Tenants:
    """Accounts in rack-seconds per weight, as in start-time fair queueing.

    A tenant that comes back after a pause starts level with the least served of those present, so that nobody can
    save up light by staying away. `weights` are relative shares, 1 where none is given.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._account: dict[str, float] = {}
        self._jobs: Counter[str] = Counter()

    def weight(self, tenant: str) -> float:
        """Its relative share."""
        return self._weights.get(tenant, 1.0)

    def account(self, tenant: str) -> float:
        """Rack-seconds had per weight."""
        return self._account.get(tenant, 0.0)

    def enter(self, tenant: str) -> None:
        """A job of this tenant has come."""
        if not self._jobs[tenant]:
            level = min((self.account(name) for name in self._jobs if self._jobs[name]), default=0.0)
            self._account[tenant] = max(self.account(tenant), level)
        self._jobs[tenant] += 1

    def leave(self, tenant: str) -> None:
        """A job of this tenant is over."""
        self._jobs[tenant] -= 1
        if not self._jobs[tenant]:
            del self._jobs[tenant]

    def charge(self, tenant: str, rack_seconds: float) -> None:
        """It has been given light for so many seconds on so many racks."""
        self._account[tenant] = self.account(tenant) + rack_seconds / self.weight(tenant)
