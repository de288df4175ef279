"""Balanced multicasting as the paper does it (section 3.1): the trees of FPFR, and a linear program for their rates.

PuLP states the program, as the reference that `exact` is compared with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pulp

from algorithms.balanced.fpfr import DEFAULT_ORDER, Order, searches
from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan, Tree, edges, kept_within
from algorithms.balanced.resources import resources


class NoRatesError(RuntimeError):
    """The solver ends without rates: a fault of the solver, since rates of 0 are always feasible."""


def balanced(
    network: Network, order: Order = DEFAULT_ORDER, seed: int = 0, *, solver: pulp.LpSolver | None = None
) -> MulticastPlan:
    """Return the best rates for the trees of FPFR, without the trees of rate 0.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    order : {"index", "random", "widest"}, optional
        Rule by which a search of FPFR picks the next host.
    seed : int, optional
        Seed of the order `random`; the others ignore it.
    solver : pulp.LpSolver, optional
        None is HiGHS.

    Returns
    -------
    Plan
        Without a bound.

    Raises
    ------
    NoRatesError
        If the solver ends without an optimum.

    Notes
    -----
    A linear program of one variable per tree, at most n ** 2 of them (balanced multicasting, section 3.1).

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> round(balanced(network).rate, 6)
    10.0
    """
    return balance(network, [tree for tree, _ in searches(network, order, seed)], solver)


def balance(network: Network, trees: Sequence[Tree], solver: pulp.LpSolver | None = None) -> MulticastPlan:
    """Return the best rates for these trees, without the trees of rate 0.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    trees : sequence of Tree
        Each the parents of all hosts.
    solver : pulp.LpSolver, optional
        None is HiGHS.

    Returns
    -------
    Plan
        Without a bound.

    Raises
    ------
    NoRatesError
        If the solver ends without an optimum.

    Notes
    -----
    A linear program of one variable per tree (balanced multicasting, section 3.1, steps 3 and 4).

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> round(balance(network, [(-1, 0, 0)]).rate, 6)
    5.0
    """
    unit = resources(network).unit
    program = pulp.LpProblem("balanced", pulp.LpMaximize)
    rates = [program.add_variable(f"rate{number}", 0) for number in range(len(trees))]
    program += pulp.lpSum(rates)
    for uses, limit in _rows(network, trees):
        program += pulp.lpSum(count * rates[number] for number, count in uses.items()) <= limit / unit
    program.solve(solver or pulp.HiGHS(msg=False, threads=1))
    if program.status != pulp.LpStatusOptimal:
        raise NoRatesError(f"PuLP's solver ended with {pulp.LpStatus[program.status]}")
    found = zip(trees, ((rate.value() or 0.0) * unit for rate in rates), strict=True)
    used = sorted(((tree, rate) for tree, rate in found if rate > 0), key=lambda item: -item[1])
    return kept_within(network, MulticastPlan(tuple(tree for tree, _ in used), tuple(rate for _, rate in used)))


def _rows(network: Network, trees: Sequence[Tree]) -> Iterator[tuple[Counter[int], float]]:
    """Yield, for each access link and path in use, how often each tree (by number) uses it, and its capacity."""
    size = network.size
    sends, receives, passes = (defaultdict[int, Counter[int]](Counter) for _ in range(3))
    for number, tree in enumerate(trees):
        for sender, receiver in edges(tree):
            sends[sender][number] += 1
            receives[receiver][number] += 1
            passes[sender * size + receiver][number] += 1
    for used, limits in ((sends, network.out), (receives, network.into), (passes, network.rates.ravel())):
        yield from ((uses, float(limits[place])) for place, uses in used.items() if limits[place] < np.inf)
