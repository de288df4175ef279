"""Balanced multicasting as the paper does it (section 3.1): the trees of FPFR, and a linear programme for their rates.

Written down with PuLP and solved by the solver that PuLP brings, CBC. `exact` is the better choice; this is what it is
compared with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pulp

from algorithms.balanced.fpfr import searches
from algorithms.balanced.network import Network
from algorithms.balanced.plan import Plan, Tree, edges, kept_within


class NoRates(RuntimeError):
    """The solver ended without rates, which is its fault: rates of 0 are always allowed."""


def balanced(network: Network) -> Plan:
    """The best rates for the trees of FPFR; trees of rate 0 are left out. Raises NoRates."""
    return balance(network, [tree for tree, _ in searches(network)])


def balance(network: Network, trees: Sequence[Tree]) -> Plan:
    """The best rates for these trees; those of rate 0 are left out. Raises NoRates."""
    programme = pulp.LpProblem("balanced", pulp.LpMaximize)
    rates = [programme.add_variable(f"rate{number}", 0) for number in range(len(trees))]
    programme += pulp.lpSum(rates)
    for uses, limit in _rows(network, trees):
        programme += pulp.lpSum(count * rates[number] for number, count in uses.items()) <= limit
    programme.solve(pulp.PULP_CBC_CMD(msg=False))
    if programme.status != pulp.LpStatusOptimal:
        raise NoRates(f"PuLP's solver ended with {pulp.LpStatus[programme.status]}")
    found = [(tree, rate.value() or 0.0) for tree, rate in zip(trees, rates, strict=True)]
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
