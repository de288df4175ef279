"""Networks of sites that a paper has, or is short of."""

from __future__ import annotations

from itertools import pairwise, permutations

from algorithms.balanced import testbeds
from mininet_topos.sites.plan import Pair, SharedLink, SitesPlan, from_network

_MBPS = 1e6
"""The papers state rates in Mbit/s."""


def figure2() -> SitesPlan:
    """Return Figure 2 of the paper, times 10 Mbit/s: links of 10, 8 and 4, capacities of 10.

    The first host is its root.
    """
    hosts = ("root", "one", "two")
    sides = {("root", "one"): 100.0, ("root", "two"): 80.0, ("one", "two"): 40.0}
    rates = {pair: rate * _MBPS for (a, b), rate in sides.items() for pair in ((a, b), (b, a))}
    capacities = dict.fromkeys(hosts, 100 * _MBPS)
    return SitesPlan(hosts, rates, capacities, dict(capacities))


def homogeneous(count: int = 8, mbps: float = 40.0) -> SitesPlan:
    """Return hosts that all have the same rates and capacities."""
    hosts = tuple(f"h{number}" for number in range(1, count + 1))
    capacities = dict.fromkeys(hosts, mbps * _MBPS)
    return SitesPlan(hosts, dict.fromkeys(permutations(hosts, 2), mbps * _MBPS), capacities, dict(capacities))


def gridlab() -> SitesPlan:
    """Return eight uneven sites, similar to some that the paper emulates.

    The paper does not print their rates: these are ours.
    """
    return from_network(testbeds.gridlab(testbeds.SITES[0]))


LOCAL_MBPS = 200.0
"""A tenth of Myrinet: the rate between hosts of a cluster, in addition to their interfaces."""
_ASIDE_MBPS = 2.0
"""From the first cluster to the third: enough for a sender to agree with its receivers, and too little to plan with."""


def clusters(count: int = 2, nodes: int = 8) -> SitesPlan:
    """Return Figure 8 at a tenth of its rates: two or three clusters in a chain, with `nodes` nodes each."""
    members = [tuple(member.name for member in each.members) for each in testbeds.clusters(count, nodes)]
    hosts = tuple(host for each in members for host in each)
    capacities = dict.fromkeys(hosts, testbeds.INTERFACE)
    rates: dict[Pair, float] = {}
    shared = []
    sides = [*zip(pairwise(members), testbeds.WIDE_AREA, strict=False)]
    sides += [((members[0], members[2]), _ASIDE_MBPS * _MBPS)] if count > 2 else []
    for (ours, theirs), rate in sides:
        for here, there in ((ours, theirs), (theirs, ours)):
            rates |= {(a, b): testbeds.INTERFACE for a in here for b in there}
            shared.append(SharedLink(here, there, rate))
    local = {pair: LOCAL_MBPS * _MBPS for each in members for pair in permutations(each, 2)}
    return SitesPlan(hosts, rates, capacities, dict(capacities), local, tuple(shared))


def clusters_file(count: int, nodes: int) -> dict[str, object]:
    """Return the network of the clusters, each as a single host, in the format that `blast trees` reads."""
    named = testbeds.das(count, nodes)
    capacities = {"out": dict(named.out), "in": dict(named.into)}
    return {
        "hosts": list(named.hosts),
        "root": named.root,
        "receivers": "all",
        "links": [list(link) for link in named.links],
        **capacities,
    }


def far(plan: SitesPlan, one_way_ms: float = 8.0) -> SitesPlan:
    """Return the plan with this delay on all its paths."""
    pairs = frozenset((a, b) for a, b in plan.rates if plan.hosts.index(a) < plan.hosts.index(b))
    return SitesPlan(plan.hosts, plan.rates, plan.out, plan.into, plan.local, plan.shared, pairs, one_way_ms)
