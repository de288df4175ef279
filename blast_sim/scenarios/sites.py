"""The sites of a scenario as hosts of a balanced multicast."""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Network
from blast_sim.scenarios.schema import SitesSection

MEGABIT = 1e6
"""Scenarios state rates in Mbit/s."""


def hosts_of(sites: SitesSection, root: int = 0) -> Network:
    """Return the sites as a network from `root` to all others, with rates in bit/s. Raises InvalidNetworkError."""
    receivers = tuple(site for site in range(len(sites.names)) if site != root)
    paths, out, into = (MEGABIT * np.array(numbers) for numbers in (sites.paths_mbps, sites.out_mbps, sites.in_mbps))
    return Network(sites.names, root, receivers, paths, out, into)
