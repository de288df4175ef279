"""Networks of sites that a paper has, or is short of."""

from __future__ import annotations

import math
import random
from itertools import pairwise, permutations

from algorithms.balanced.clusters import Cluster, Member, as_hosts
from mininet_topos.sites.plan import Pair, SharedLink, SitesPlan

_MBPS = 1e6


def figure2() -> SitesPlan:
    """Figure 2 of the paper: links of 10, 8 and 4, capacities of 10, times 10 Mbit/s; the first host is its root."""
    hosts = ("root", "one", "two")
    sides = {("root", "one"): 100.0, ("root", "two"): 80.0, ("one", "two"): 40.0}
    rates = {pair: rate * _MBPS for (a, b), rate in sides.items() for pair in ((a, b), (b, a))}
    capacities = dict.fromkeys(hosts, 100 * _MBPS)
    return SitesPlan(hosts, rates, capacities, dict(capacities))


def homogeneous(count: int = 8, mbps: float = 40.0) -> SitesPlan:
    """So many hosts that all have the same rates and capacities."""
    hosts = tuple(f"h{number}" for number in range(1, count + 1))
    capacities = dict.fromkeys(hosts, mbps * _MBPS)
    return SitesPlan(hosts, dict.fromkeys(permutations(hosts, 2), mbps * _MBPS), capacities, dict(capacities))


_SITES = {
    "amsterdam": (52.37, 4.90, 80.0),
    "berlin": (52.52, 13.40, 60.0),
    "brno": (49.20, 16.61, 30.0),
    "budapest": (47.50, 19.04, 20.0),
    "cardiff": (51.48, -3.18, 25.0),
    "chicago": (41.88, -87.63, 60.0),
    "lecce": (40.35, 18.17, 12.0),
    "poznan": (52.41, 16.92, 50.0),
}
"""Latitude, longitude, and what the access link sends, in Mbit/s."""
_RECEIVES_MBPS = 50.0
"""At least."""
_LEAST_MBPS, _MOST_MBPS = 5.0, 100.0
_WINDOW_BITS = 64 * 1024 * 8
_CABLE_KM_PER_SECOND = 130_000.0
"""Light in glass goes at 200 000 km/s, and cables go round corners."""
_NEAREST_SECONDS = 0.004
_SIGMA = 0.5


def gridlab(seed: int = 1) -> SitesPlan:
    """Eight sites in Europe and the US, such as those that the paper emulates; it does not print their rates.

    These are ours: what TCP's window of 64 KiB carries over the distance, times chance (log-normal, sigma 0.5), within
    5 to 100 Mbit/s. Access links send 12 to 80 Mbit/s. No path is dead, as some of the paper's are behind firewalls: a
    sender has to reach all its receivers, if only to agree with them.
    """
    dice = random.Random(f"gridlab/{seed}")
    rates = {}
    for pair in permutations(_SITES, 2):
        mbps = _WINDOW_BITS / _round_trip_seconds(*pair) / _MBPS * math.exp(dice.gauss(0.0, _SIGMA))
        rates[pair] = round(min(max(mbps, _LEAST_MBPS), _MOST_MBPS), 1) * _MBPS
    sends = {site: mbps * _MBPS for site, (_, _, mbps) in _SITES.items()}
    receives = {site: max(rate, _RECEIVES_MBPS * _MBPS) for site, rate in sends.items()}
    return SitesPlan(tuple(_SITES), rates, sends, receives)


def _round_trip_seconds(one: str, other: str) -> float:
    (north, east, _), (other_north, other_east, _) = _SITES[one], _SITES[other]
    ours, theirs, between = (math.radians(angle) for angle in (north, other_north, other_east - east))
    cosine = math.sin(ours) * math.sin(theirs) + math.cos(ours) * math.cos(theirs) * math.cos(between)
    return _NEAREST_SECONDS + 2 * 6371 * math.acos(cosine) / _CABLE_KM_PER_SECOND


CLUSTERS = ("amsterdam", "leiden", "delft")
WIDE_AREA_MBPS = (52.0, 45.6)
"""Figure 8: 65 MB/s from Amsterdam to Leiden and 57 MB/s from Leiden to Delft, a tenth of it."""
NIC_MBPS = 10.0
"""FastEthernet, a tenth of it."""
LOCAL_MBPS = 200.0
"""Myrinet, a tenth of it: what hosts of a cluster have among each other, beside their NICs."""
_ASIDE_MBPS = 2.0
"""From Amsterdam to Delft: enough for a sender to agree with its receivers, and too little to plan with."""


def clusters(count: int = 2, nodes: int = 8) -> SitesPlan:
    """Figure 8, a tenth of everything: two or three clusters in a chain, of so many nodes each."""
    members = [_nodes(cluster, nodes) for cluster in CLUSTERS[:count]]
    hosts = tuple(host for each in members for host in each)
    capacities = dict.fromkeys(hosts, NIC_MBPS * _MBPS)
    rates: dict[Pair, float] = {}
    shared = []
    sides = [*zip(pairwise(members), WIDE_AREA_MBPS, strict=False)]
    sides += [((members[0], members[2]), _ASIDE_MBPS)] if count > 2 else []
    for (ours, theirs), mbps in sides:
        for here, there in ((ours, theirs), (theirs, ours)):
            rates |= {(a, b): NIC_MBPS * _MBPS for a in here for b in there}
            shared.append(SharedLink(here, there, mbps * _MBPS))
    local = {pair: LOCAL_MBPS * _MBPS for each in members for pair in permutations(each, 2)}
    return SitesPlan(hosts, rates, capacities, dict(capacities), local, tuple(shared))


def as_clusters(count: int, nodes: int) -> tuple[tuple[Cluster, ...], list[tuple[str, str, float]]]:
    """The same for a planner: clusters as single hosts, and the links between them."""
    nic = NIC_MBPS * _MBPS
    found = tuple(
        Cluster(name, tuple(Member(host, nic, nic) for host in _nodes(name, nodes))) for name in CLUSTERS[:count]
    )
    links = []
    for (one, other), mbps in zip(pairwise(CLUSTERS[:count]), WIDE_AREA_MBPS, strict=False):
        links += [(one, other, mbps * _MBPS), (other, one, mbps * _MBPS)]
    return found, links


def clusters_file(count: int, nodes: int) -> dict[str, object]:
    """The same in the format that `blast trees` reads."""
    found, links = as_clusters(count, nodes)
    named = as_hosts(found, CLUSTERS[0], links)
    capacities = {"out": dict(named.out), "in": dict(named.into)}
    return {"hosts": list(named.hosts), "root": named.root, "receivers": "all", "links": links, **capacities}


def _nodes(cluster: str, nodes: int) -> tuple[str, ...]:
    return tuple(f"{cluster}{number}" for number in range(1, nodes + 1))


def far(plan: SitesPlan, one_way_ms: float = 8.0) -> SitesPlan:
    """The plan with all its paths so long."""
    pairs = frozenset((a, b) for a, b in plan.rates if plan.hosts.index(a) < plan.hosts.index(b))
    return SitesPlan(plan.hosts, plan.rates, plan.out, plan.into, plan.local, plan.shared, pairs, one_way_ms)
