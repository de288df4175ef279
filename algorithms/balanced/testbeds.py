"""The two testbeds of the paper's evaluation (section 4), as networks to plan for and to emulate. Rates are in bit/s.

The paper prints no figures of its GridLab sites, so those here are made up: eight sites with paths of 5 to 100 Mbit/s,
one site far from the others. They were drawn from a seed and kept because on them holds what the
paper says of its own (Figure 7). Of its clusters it prints all that matters (Figure 8), here at a tenth: interfaces of
10 Mbit/s, and wide-area paths of 52 and 45.6 Mbit/s in a row.
"""

from __future__ import annotations

import numpy as np

from algorithms.balanced.clusters import Cluster, Member, as_hosts
from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import Network, UnknownHost

MEGABIT = 1e6

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
"""In the order in which the data passes them."""
INTERFACE = 10 * MEGABIT
"""What a node of a cluster sends and receives over the wide area."""
WIDE_AREA = (52 * MEGABIT, 45.6 * MEGABIT)
"""From each cluster to the next."""


def gridlab(root: str) -> Network:
    """The eight sites, one of which has data for all others.

    Parameters
    ----------
    root : str
        One of `SITES`.

    Returns
    -------
    Network
        Rates in bit/s, made up (see above).

    Raises
    ------
    UnknownHost
        There is no such site.

    Examples
    --------
    >>> gridlab("brno").size
    8
    """
    if root not in SITES:
        raise UnknownHost(f"the root is {root!r}, which is not among the sites: {', '.join(SITES)}")
    place = SITES.index(root)
    receivers = tuple(site for site in range(len(SITES)) if site != place)
    paths, out, into = (MEGABIT * np.array(numbers, np.float64) for numbers in (_PATHS, _OUT, _INTO))
    return Network(SITES, place, receivers, paths, out, into)


def clusters(count: int, nodes: int) -> tuple[Cluster, ...]:
    """The first two or three clusters with so many nodes each, named `leiden0`, `leiden1` and so on.

    Parameters
    ----------
    count : int
        Clusters, 2 or 3.
    nodes : int
        Hosts in each of them.

    Returns
    -------
    tuple of Cluster
        What interfaces carry in bit/s.

    Examples
    --------
    >>> [member.name for member in clusters(2, 2)[1].members]
    ['leiden0', 'leiden1']
    """
    return tuple(
        Cluster(name, tuple(Member(f"{name}{node}", INTERFACE, INTERFACE) for node in range(nodes)))
        for name in CLUSTERS[:count]
    )


def das(count: int, nodes: int) -> NamedNetwork:
    """These clusters as single hosts; the first has the data. Paths are there from each to the next only.

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
