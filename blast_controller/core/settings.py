"""What the operator may set about decisions; times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """`most_splitters` is the paper's k (None: no limit); a lease is the estimated service time times
    `lease_factor`, at least `lease_minimum`."""

    group_network: IPv4Network = field(default_factory=lambda: IPv4Network("239.77.0.0/16"))
    group_port: int = 5001
    policy: str = "paper"
    most_splitters: int | None = None
    loop_leaf: bool = False
    lease_factor: float = 2.0
    lease_minimum: float = 10.0
    failures_allowed: int = 3
    orphan_grace: float = 2.0
    remember_ended: float = 3600.0
    retry_after: float = 1.0
    most_requests: int = 100_000
