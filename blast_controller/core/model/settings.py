"""Settings of the operator for decisions; times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from algorithms.scheduling import DEFAULT


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """Limits of one tenant: pending parts, splitters held at a time, seconds of lit trees within an hour.

    `share` is its weight relative to other tenants, for policies that share by tenant.
    """

    max_pending: int | None = None
    max_splitters: int | None = None
    max_light_seconds: float | None = None
    share: float = 1.0


UNLIMITED = TenantLimits()


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """Settings of the core.

    `max_splitters_per_tree` is the paper's k (None: no limit). A lease is the estimated service time times
    `lease_factor`, at least `lease_minimum` and, with extensions, at most `lease_maximum`. The minimum rate of requests
    is `min_rate` bit/s (None: a thousandth of the line rate).

    `reconcile_every` is the interval of reconciliation (None: never); a grant waits `link_wait` for the ports of its
    leaves, and a link may be lost for `flap_tolerance`; a fiber is dead if no probe passes it within `probe_wait`. A
    tree whose transfer is done stays warm for `keep_warm` if no other group needs its pieces (0: it is torn down at
    once), and the share `warm_reserve` of the idle pieces of each kind stays dark (0: none). `optimize` is the
    optimizer's time budget for a decision (0: no optimizer). The latest `max_events` events of a request and at most
    `max_ended` ended requests are kept; a tenant without own limits may have `max_pending_per_tenant` pending parts.
    """

    group_network: IPv4Network = field(default_factory=lambda: IPv4Network("239.77.0.0/16"))
    group_port: int = 5001
    policy: str = DEFAULT
    max_splitters_per_tree: int | None = None
    loop_leaf: bool = False
    lease_factor: float = 2.0
    lease_minimum: float = 10.0
    lease_maximum: float = 86_400.0
    min_rate: float | None = None
    failures_allowed: int = 3
    orphan_grace: float = 2.0
    remember_ended: float = 3600.0
    retry_after: float = 1.0
    max_requests: int = 100_000
    max_ended: int = 20_000
    max_events: int = 64
    reconcile_every: float | None = None
    link_wait: float = 5.0
    flap_tolerance: float = 1.0
    probe_wait: float = 1.0
    keep_warm: float = 0.0
    warm_reserve: float = 0.0
    optimize: float = 0.0
    max_pending_per_tenant: int = 4096
    tenants: Mapping[str, TenantLimits] = field(default_factory=dict)

    def limits(self, tenant: str) -> TenantLimits:
        """Return the limits of a tenant."""
        return self.tenants.get(tenant, UNLIMITED)

    def pending_limit(self, tenant: str) -> int:
        """Return the limit of a tenant's pending parts."""
        own = self.limits(tenant).max_pending
        return self.max_pending_per_tenant if own is None else own


@dataclass(slots=True)
class StandingOrders:
    """The operator's current settings; read them at each use."""

    settings: CoreSettings
    draining: bool = False

    def limits(self, tenant: str) -> TenantLimits:
        """Return the limits of a tenant."""
        return self.settings.limits(tenant)
