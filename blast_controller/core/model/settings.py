"""What the operator may set about decisions; times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from algorithms.scheduling import DEFAULT


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """What one tenant may have: parts that wait, splitters held at once, seconds of lit trees within an hour.

    `share` is its part of the light relative to others', for policies that share by tenant.
    """

    max_pending: int | None = None
    max_splitters: int | None = None
    max_light_seconds: float | None = None
    share: float = 1.0


UNLIMITED = TenantLimits()


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """`max_splitters_per_tree` is the paper's k (None: no limit); a lease is the estimated service time times
    `lease_factor`, at least `lease_minimum` and, extensions included, at most `lease_maximum`; nobody asks for light at
    less than `min_rate` bit/s (None: a thousandth of the line's); `reconcile_every` is how often devices are read
    again (None: never); a grant waits `link_wait` for the ports of its leaves, and a link may be lost for
    `flap_tolerance`;
    a fiber is dead if no probe has come through it within `probe_wait`; a tree whose transfer is done stays lit for
    `keep_warm` if nobody needs a piece of it (0: is taken down at once), and of each kind of pieces that no transfer
    uses the share `warm_reserve` is kept dark (0: none is); `optimize` is how long the optimizer may think about a
    decision (0: it is not asked); of a request the latest `max_events` events are kept, and of ended requests
    `max_ended` are known; a tenant of which nothing else is said may have `max_pending_per_tenant` parts that wait."""

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
        """What this tenant may have."""
        return self.tenants.get(tenant, UNLIMITED)

    def pending_limit(self, tenant: str) -> int:
        """How many parts of this tenant may wait."""
        own = self.limits(tenant).max_pending
        return self.max_pending_per_tenant if own is None else own


@dataclass(slots=True)
class StandingOrders:
    """What the operator has ordered, until the next order: to be read whenever something goes by it."""

    settings: CoreSettings
    draining: bool = False

    def limits(self, tenant: str) -> TenantLimits:
        """What this tenant may have."""
        return self.settings.limits(tenant)
