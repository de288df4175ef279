"""Accounts of the rack-seconds that each tenant has used, for policies that share by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class Tenants:
    """Accounts in rack-seconds per weight, as in start-time fair queueing.

    A tenant that returns after a pause starts level with the least served tenant present, so that no tenant can
    accumulate credit while absent.

    Parameters
    ----------
    weights : mapping of str to float, optional
        Tenants to their relative shares; 1 for other tenants.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._account: dict[str, float] = {}
        self._jobs: Counter[str] = Counter()

    def weight(self, tenant: str) -> float:
        """Return the relative share of a tenant.

        Parameters
        ----------
        tenant : str
            Name of the tenant.

        Returns
        -------
        float
            1 by default.
        """
        return self._weights.get(tenant, 1.0)

    def account(self, tenant: str) -> float:
        """Return the account of a tenant.

        Parameters
        ----------
        tenant : str
            Name of the tenant.

        Returns
        -------
        float
            Used rack-seconds per weight, 0 for an unknown tenant.
        """
        return self._account.get(tenant, 0.0)

    def enter(self, tenant: str) -> None:
        """Add a job of a tenant.

        Parameters
        ----------
        tenant : str
            Name of the tenant.
        """
        if not self._jobs[tenant]:
            level = min((self.account(name) for name in self._jobs if self._jobs[name]), default=0.0)
            self._account[tenant] = max(self.account(tenant), level)
        self._jobs[tenant] += 1

    def leave(self, tenant: str) -> None:
        """Remove a job of a tenant.

        Parameters
        ----------
        tenant : str
            Name of the tenant.
        """
        self._jobs[tenant] -= 1
        if not self._jobs[tenant]:
            del self._jobs[tenant]

    def charge(self, tenant: str, rack_seconds: float) -> None:
        """Charge a tenant for a grant.

        Parameters
        ----------
        tenant : str
            Name of the tenant.
        rack_seconds : float
            Seconds of the grant times racks.
        """
        self._account[tenant] = self.account(tenant) + rack_seconds / self.weight(tenant)
