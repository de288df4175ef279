"""Resources that trees use, as rows of a linear program: sending and receiving capacity of hosts, capacity of paths.

Of n hosts, row i is the sending capacity of host i, n + i its receiving capacity, 2n + i * n + j the path from i to j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from algorithms.balanced.bottleneck import widest_tree
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import Tree, ends


@dataclass(frozen=True, slots=True)
class Use:
    """The `amounts` of `rows` that a unit of rate over one tree uses; no row occurs twice."""

    rows: NDArray[np.intp]
    amounts: Floats


@dataclass(frozen=True, eq=False)
class Resources:
    """The `limits` of all rows, in units of `unit`; infinite if no tree can reach the limit or no data can pass at all.

    The unit is a power of two near the rate of the widest path to the host that is hardest to reach, so that the
    solver's absolute tolerances have the same effect on every network.
    """

    network: Network
    unit: float
    limits: Floats
    _uses: dict[Tree, Use] = field(default_factory=dict, repr=False)

    @cached_property
    def _limited(self) -> NDArray[np.bool_]:
        return np.isfinite(self.limits)

    @cached_property
    def _closed(self) -> Floats:
        """Infinite for arcs without capacity, and 0 elsewhere."""
        return np.where(self.network.widths > 0, 0.0, np.inf)

    def use(self, tree: Tree) -> Use:
        """Return the use of the limited rows by a tree."""
        if tree not in self._uses:
            self._uses[tree] = self._use(tree)
        return self._uses[tree]

    def _use(self, tree: Tree) -> Use:
        heads, tails = ends(tree)
        size = self.network.size
        copies = np.bincount(tails, minlength=size).astype(np.float64)
        senders = np.flatnonzero(copies)
        rows = np.concatenate((senders, size + heads, 2 * size + tails * size + heads))
        amounts = np.concatenate((copies[senders], np.ones(2 * len(heads))))
        limited = self._limited[rows]
        return Use(rows[limited], amounts[limited])

    def arc_costs(self, prices: Floats) -> Floats:
        """Return the costs of arcs (n x n, infinite for arcs without capacity) at these prices of the rows."""
        size = self.network.size
        costs = prices[2 * size :].reshape(size, size) + prices[:size, None] + prices[None, size : 2 * size]
        costs += self._closed
        return costs


def resources(network: Network) -> Resources:
    """Return the rows of a network.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Returns
    -------
    Resources
        2n + n ** 2 limits.

    Notes
    -----
    O(n ** 2).

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> rows = resources(network)
    >>> rows.unit, rows.limits[:3].tolist()
    (8.0, [1.25, inf, inf])
    """
    heads, tails = ends(widest_tree(network, network.widths))
    unit = 2.0 ** math.floor(math.log2(network.widths[tails, heads].min()))
    limits = _limits(network) / unit
    # No path across the narrowest cut is wider than two units, so that no plan is faster than n * n / 2 of them.
    limits[(limits == 0) | (limits > network.size**3)] = np.inf
    return Resources(network, unit, limits)


def _limits(network: Network) -> Floats:
    # Every tree enters every receiver, so the receiver with the smallest capacity limits them all.
    slowest = min(network.receivers, key=lambda receiver: float(network.into[receiver]))
    max_rate = network.into[slowest]
    into = np.where(network.into < max_rate, network.into, np.inf)
    into[slowest] = max_rate
    sooner = np.minimum(network.out[:, None], np.minimum(network.into, max_rate)[None, :])
    rates = np.where(network.rates < sooner, network.rates, np.inf)
    return np.concatenate((network.out, into, rates.ravel()))
