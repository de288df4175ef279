"""What the soak is played on, as data: racks, tenants, tokens, the controller's settings.

Light is lent to whoever asks first, and a tenant with the right to it may keep it: that is no attack. So applications,
transfers and hostile tenants have racks of their own, and meet at the controller, the switches and the processors.
"""

from __future__ import annotations

from collections.abc import Mapping

from blast_controller.rpc.clients.identity import Identity, Role
from mininet_topos.plan import LabPlan

PLAN = LabPlan(
    racks=10,
    hosts_per_rack=2,
    optical_ports_per_rack=2,
    splitters={4: 6},
    light_rate_mbps=40.0,
    access_rate_mbps=40.0,
)
"""Light enough for the honest load: near its limit, waiting for light would be all that the times tell of."""
APPLICATIONS, TRANSFERS, HOSTILE = (1, 2, 3, 4, 5), (6, 7, 8), (9, 10)
"""Numbers of racks."""

OPERATOR, OBSERVER, EVIL, EVIL_VIEWER = "operator", "observer", "evil", "evil-viewer"
HONEST_TENANTS = ("physics", "biology")
EVIL_TENANT = "mallory"
IDENTITIES: Mapping[str, Identity] = {
    OPERATOR: Identity("default", Role.OPERATOR),
    OBSERVER: Identity("physics", Role.VIEWER),
    **{tenant: Identity(tenant, Role.USER) for tenant in HONEST_TENANTS},
    EVIL: Identity(EVIL_TENANT, Role.USER),
    EVIL_VIEWER: Identity(EVIL_TENANT, Role.VIEWER),
}
"""Whose the token in the file NAME.token is."""

KEEP_WARM_MS, REMEMBER_ENDED_MS, KEEP_ENTRIES = 2_000, 300_000, 10_000
"""A trace of what is over must have been dropped before the warm-up ends, for anything to be flat after it."""
SETTINGS = (
    f"keep_warm_ms = {KEEP_WARM_MS}, remember_ended_ms = {REMEMBER_ENDED_MS}, keep_entries = {KEEP_ENTRIES}; "
    "all else by default"
)


def hosts_of(racks: tuple[int, ...]) -> list[str]:
    """The hosts of these racks, rack by rack."""
    return [host.name for rack in PLAN.rack_plans if rack.number in racks for host in rack.hosts]
