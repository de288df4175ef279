"""Accounts of the rack-seconds that each tenant has used, for policies that share by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class Tenants:
    """Accounts in rack-seconds per weight, as in start-time fair queueing.

    A tenant that returns after a pause starts level with the least served tenant present, so that no tenant can
    accumulate credit while absent. `weights` are relative shares, 1 by default.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._account: dict[str, float] = {}
        self._jobs: Counter[str] = Counter()

    def weight(self, tenant: str) -> float:
        """Return the tenant's relative share."""
        return self._weights.get(tenant, 1.0)

    def account(self, tenant: str) -> float:
        """Return the rack-seconds used per weight."""
        return self._account.get(tenant, 0.0)

    def enter(self, tenant: str) -> None:
        """Add a job of this tenant."""
        if not self._jobs[tenant]:
            level = min((self.account(name) for name in self._jobs if self._jobs[name]), default=0.0)
            self._account[tenant] = max(self.account(tenant), level)
        self._jobs[tenant] += 1

    def leave(self, tenant: str) -> None:
        """Remove a job of this tenant."""
        self._jobs[tenant] -= 1
        if not self._jobs[tenant]:
            del self._jobs[tenant]

    def charge(self, tenant: str, rack_seconds: float) -> None:
        """Charge the tenant for `rack_seconds`: seconds of a grant times racks."""
        self._account[tenant] = self.account(tenant) + rack_seconds / self.weight(tenant)
