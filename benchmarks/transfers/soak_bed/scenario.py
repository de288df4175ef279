"""The lab, the tenants, the clients and the slices of a soak, as data.

A tenant may keep its grants, which is not an attack. Applications, transfers and hostile tenants therefore have
separate racks, and share the controller, the switches and the processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from blast_controller.rpc.clients.identity import Identity, Role
from mininet_topos.topology.plan import LabPlan

PLAN = LabPlan(
    racks=10, hosts_per_rack=2, optical_ports_per_rack=2, splitters={4: 6}, light_rate_mbps=40.0, access_rate_mbps=40.0
)
"""A fabric with enough capacity for the honest load: close to its limit, times would only show pending requests."""
APPLICATIONS, TRANSFERS, HOSTILE = (1, 2, 3, 4, 5), (6, 7, 8), (9, 10)
"""Rack numbers."""

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
"""The owner of the token in each file NAME.token."""

SETTINGS = {"keep_warm_ms": 2_000, "ended_retention_ms": 300_000, "retention_entries": 10_000}
"""Short enough for memory and journal to stop growing before the warm-up ends."""
SENDERS = 2
APPLICATION_SECONDS, OBSERVER_SECONDS, SEND_SECONDS = 7.0, 3.0, 10.0
"""The period of each honest client."""

ATTACKS: Mapping[str, str] = {
    "flood": "30 connections/s without a token, a third with TLS, held up to 30 s, at most 2000 open",
    "frames": "5 connections/s without a token: half a frame of 1 MiB, one byte of a frame, a length of 2^31 - 1, "
    "16 calls of 250 kB at once",
    "vanish": "500 pending requests on one connection that closes after 2 s; every 5 s",
    "extend": "50 extend(addBytes=1)/s of one pending request",
    "view": "20 calls/s of fabric, explain, listRequests(1000) in rotation, and 80 awaitEvent/s that last 60 s",
    "forge": "datagrams in the session of each running transfer: 240/s at every receiver, 10/s at every other host",
    "garbage": "5 connections/s at the OpenFlow port, 2/s at agents: noise, half a header, extreme lengths, silence",
}
"""The attacks; `forge` and `garbage` always run if there is a hostile client."""
CLIENT_ATTACKS = tuple(ATTACKS)[:5]


@dataclass(frozen=True, slots=True)
class Roster:
    """The number of clients of each kind; `attacks` names the attack of each hostile one."""

    applications: int
    observers: int
    attacks: tuple[str, ...]


def roster(clients: int, hostile: int, attacks: Sequence[str] = CLIENT_ATTACKS) -> Roster:
    """Divide `clients` into kinds. Raises ValueError for an unknown attack or too few honest clients."""
    if unknown := [attack for attack in attacks if attack not in CLIENT_ATTACKS]:
        raise ValueError(f"unknown attack {unknown[0]!r}: choose from {', '.join(CLIENT_ATTACKS)}")
    honest = clients - hostile
    observers = max(1, honest // 5)
    applications = honest - observers - SENDERS
    if applications < 1 or hostile < 0:
        raise ValueError(f"{clients} clients with {hostile} hostile ones leave {honest} honest: give at least 4")
    return Roster(applications, observers, tuple(islice(cycle(attacks), hostile)))


BASELINE, SOAK = "baseline", "soak"


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the run: `BASELINE` without hostile clients, or `SOAK`."""

    phase: str
    seconds: float


def slices(minutes: float) -> list[Slice]:
    """Alternate baseline and soak: on a shared machine, only times that are measured close together are comparable."""
    rounds = max(2, round(minutes / 6))
    each = minutes * 60 / rounds
    baseline = min(max(20.0, each / 6), each / 2)
    return [Slice(BASELINE, baseline), Slice(SOAK, each - baseline)] * rounds


def hosts_of(racks: tuple[int, ...]) -> list[str]:
    """Return the hosts of these racks, in order."""
    return [host.name for rack in PLAN.rack_plans if rack.number in racks for host in rack.hosts]
