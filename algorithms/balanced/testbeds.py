"""The two testbeds of the paper's evaluation (section 4), as networks to plan for and to emulate. Rates are in bit/s.

The paper prints no rates of its GridLab sites. The eight sites here are synthetic, with paths of 5 to 100 Mbit/s and no
dead link, and were chosen so that the paper's claims (Figure 7) hold on them with FPFR in the order `widest`: they
cannot confirm a claim. `random_sites` therefore draws other networks from the same rates, without a choice.

Of its clusters the paper prints all that matters (Figure 8), here at a tenth: interfaces of 10 Mbit/s, and wide-area
paths of 52 and 45.6 Mbit/s in a row.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from algorithms.balanced.clusters import Cluster, ClusterHost, as_hosts
from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import Network, UnknownHostError

MEGABIT = 1e6
"""The papers state rates in Mbit/s."""

SITES = ("amsterdam", "berlin", "brno", "cardiff", "lecce", "poznan", "zurich", "chicago")

_PATHS = (
    (0, 17, 9, 92, 73, 5, 47, 9),
    (37, 0, 75, 42, 57, 19, 11, 24),
    (37, 5, 0, 100, 74, 5, 47, 6),
    (27, 20, 33, 0, 30, 19, 87, 21),
    (5, 29, 5, 43, 0, 13, 27, 27),
    (31, 37, 100, 7, 36, 0, 41, 52),
    (5, 38, 40, 74, 18, 46, 0, 49),
    (14, 16, 25, 5, 11, 40, 25, 0),
)
"""Mbit/s from one site (row) to another."""
_OUT = (80, 45, 100, 45, 100, 45, 100, 45)
_INTO = (100, 100, 100, 60, 100, 100, 100, 100)

CLUSTERS = ("amsterdam", "leiden", "delft")
"""In the order of the data."""
INTERFACE = 10 * MEGABIT
"""Capacity of a node's wide-area interface in each direction."""
WIDE_AREA = (52 * MEGABIT, 45.6 * MEGABIT)
"""From each cluster to the next."""


def gridlab(root: str) -> Network:
    """Return the eight sites, one of which sends data to all others.

    Parameters
    ----------
    root : str
        One of `SITES`.

    Returns
    -------
    Network
        Rates in bit/s, synthetic (see the module).

    Raises
    ------
    UnknownHostError
        If there is no such site.

    Examples
    --------
    >>> gridlab("brno").size
    8
    """
    if root not in SITES:
        raise UnknownHostError(f"the root is {root!r}, which is not among the sites: {', '.join(SITES)}")
    return _sites(SITES.index(root), _PATHS, _OUT, _INTO)


def random_sites(seed: int, root: int) -> Network:
    """Return eight sites whose rates are resampled from those of `gridlab`.

    Each path takes the rate of one of the 56 paths there, each access link the capacity of one of the eight access
    links in its direction, all drawn independently with replacement. The networks share the number of sites, the
    distribution of rates and of capacities, and the absence of dead links; which site is well connected is chance.

    Parameters
    ----------
    seed : int
        Seed of the rates and capacities.
    root : int
        Site from 0 to 7 that sends to all others. It does not change the rates.

    Returns
    -------
    Network
        Rates in bit/s.

    Examples
    --------
    >>> random_sites(0, 3).hosts[3]
    'site3'
    """
    draw = random.Random(f"sites/{seed}")
    sites = range(len(SITES))
    rates = [rate for row in _PATHS for rate in row if rate]
    paths = [[0 if i == j else draw.choice(rates) for j in sites] for i in sites]
    out, into = ([draw.choice(capacities) for _ in sites] for capacities in (_OUT, _INTO))
    return _sites(root, paths, out, into, tuple(f"site{site}" for site in sites))


def _sites(
    root: int,
    paths: Sequence[Sequence[int]],
    out: Sequence[int],
    into: Sequence[int],
    names: tuple[str, ...] = SITES,
) -> Network:
    """Return the network of these rates in Mbit/s."""
    receivers = tuple(site for site in range(len(names)) if site != root)
    rates, sent, received = (MEGABIT * np.array(numbers, np.float64) for numbers in (paths, out, into))
    return Network(names, root, receivers, rates, sent, received)


def clusters(count: int, nodes: int) -> tuple[Cluster, ...]:
    """Return the first two or three clusters of `nodes` nodes each, named `leiden0`, `leiden1` and so on.

    Parameters
    ----------
    count : int
        Clusters, 2 or 3.
    nodes : int
        Hosts in each of them.

    Returns
    -------
    tuple of Cluster
        Capacities of the interfaces in bit/s.

    Examples
    --------
    >>> [member.name for member in clusters(2, 2)[1].members]
    ['leiden0', 'leiden1']
    """
    return tuple(
        Cluster(name, tuple(ClusterHost(f"{name}{node}", INTERFACE, INTERFACE) for node in range(nodes)))
        for name in CLUSTERS[:count]
    )


def das(count: int, nodes: int) -> NamedNetwork:
    """Return these clusters as single hosts; the first sends. Each has a path to the next only.

    Parameters
    ----------
    count : int
        Clusters, 2 or 3.
    nodes : int
        Hosts in each of them.

    Returns
    -------
    NamedNetwork
        Rates in bit/s, a tenth of those of balanced multicasting, section 4.2.

    Examples
    --------
    >>> float(das(2, 4).numbered().rates.max())
    52000000.0
    """
    links = list(zip(CLUSTERS[: count - 1], CLUSTERS[1:count], WIDE_AREA, strict=False))
    return as_hosts(clusters(count, nodes), CLUSTERS[0], links)
