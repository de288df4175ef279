"""Balanced multicasting as the paper does it (section 3.1): the trees of FPFR, and a linear programme for their rates.

Written down with PuLP, as the reference that `exact` is compared with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pulp

from algorithms.balanced.fpfr import searches
from algorithms.balanced.network import Network
from algorithms.balanced.plan import Plan, Tree, edges, kept_within
from algorithms.balanced.resources import resources


class NoRates(RuntimeError):
    """The solver ended without rates, which is its fault: rates of 0 are always allowed."""


def balanced(network: Network, solver: pulp.LpSolver | None = None) -> Plan:
    """The best rates for the trees of FPFR; trees of rate 0 are left out.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    solver : pulp.LpSolver, optional
        None is HiGHS.

    Returns
    -------
    Plan
        Without a bound.

    Raises
    ------
    NoRates
        The solver ends without an optimum.

    Notes
    -----
    A linear programme of one variable per tree, at most n ** 2 of them (balanced multicasting, section 3.1).

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> round(balanced(network).rate, 6)
    10.0
    """
    return balance(network, [tree for tree, _ in searches(network)], solver)


def balance(network: Network, trees: Sequence[Tree], solver: pulp.LpSolver | None = None) -> Plan:
    """The same for these trees."""
    unit = resources(network).unit
    programme = pulp.LpProblem("balanced", pulp.LpMaximize)
    rates = [programme.add_variable(f"rate{number}", 0) for number in range(len(trees))]
    programme += pulp.lpSum(rates)
    for uses, limit in _rows(network, trees):
        programme += pulp.lpSum(count * rates[number] for number, count in uses.items()) <= limit / unit
    programme.solve(solver or pulp.HiGHS(msg=False, threads=1))
    if programme.status != pulp.LpStatusOptimal:
        raise NoRates(f"PuLP's solver ended with {pulp.LpStatus[programme.status]}")
    found = zip(trees, ((rate.value() or 0.0) * unit for rate in rates), strict=True)
    used = sorted(((tree, rate) for tree, rate in found if rate > 0), key=lambda item: -item[1])
    return kept_within(network, Plan(tuple(tree for tree, _ in used), tuple(rate for _, rate in used)))


def _rows(network: Network, trees: Sequence[Tree]) -> Iterator[tuple[Counter[int], float]]:
    """How often each tree (by number) uses an access link or a path, and what that can carry."""
    size = network.size
    sends, receives, passes = (defaultdict[int, Counter[int]](Counter) for _ in range(3))
    for number, tree in enumerate(trees):
        for sender, receiver in edges(tree):
            sends[sender][number] += 1
            receives[receiver][number] += 1
            passes[sender * size + receiver][number] += 1
    for used, limits in ((sends, network.out), (receives, network.into), (passes, network.rates.ravel())):
        yield from ((uses, float(limits[place])) for place, uses in used.items() if limits[place] < np.inf)
