"""Balanced multicast against a linear program over all trees, from sections 2.2 and 3.1 of its paper alone.

Every arborescence from the root is a variable. The rates over a link, of all that a host sends and of all that it
receives add up to no more than the rate of the link and the capacities of the host.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from algorithms.balanced.balancing import balanced
from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import fpfr
from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan

Tree = tuple[int, ...]
TOLERANCE = 1e-7
ROOT = 0


def _trees(size: int) -> Iterator[Tree]:
    """Yield the parents (-1 for the root) of all trees that lead from the root to every host."""
    for parents in product(range(size), repeat=size - 1):
        tree = (-1, *parents)
        if all(_reaches_root(tree, host) for host in range(1, size)):
            yield tree


def _reaches_root(tree: Tree, host: int) -> bool:
    for _ in tree:
        host = tree[host] if host != ROOT else ROOT
    return host == ROOT


def _limits(network: Network, trees: Sequence[Tree]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows of the program and their bounds; infinite capacities have no row."""
    rows: list[list[int]] = []
    bounds: list[float] = []
    for i, j in product(range(network.size), repeat=2):
        if i != j:
            rows.append([int(tree[j] == i) for tree in trees])
            bounds.append(float(network.rates[i, j]))
    for host in range(network.size):
        rows.append([tree.count(host) for tree in trees])
        bounds.append(float(network.out[host]))
        rows.append([int(host != ROOT) for _ in trees])
        bounds.append(float(network.into[host]))
    finite = np.isfinite(bounds)
    return np.array(rows, dtype=float)[finite], np.array(bounds)[finite]


def _optimum(network: Network, trees: Sequence[Tree]) -> float:
    """Return the best sum of rates: the simplex method in exact fractions, by Bland's rule, which cannot cycle."""
    rows, bounds = _limits(network, trees)
    slack = np.eye(len(rows))
    table = [[Fraction(x) for x in row] for row in np.column_stack([rows, slack, bounds]).tolist()]
    gains = [Fraction(at < len(trees)) for at in range(len(trees) + len(rows) + 1)]
    gains[-1] = Fraction(0)
    basis = [len(trees) + at for at in range(len(rows))]
    while any(gain > 0 for gain in gains[:-1]):
        enters = next(at for at, gain in enumerate(gains) if gain > 0)
        ratios = [(row[-1] / row[enters], basis[at], at) for at, row in enumerate(table) if row[enters] > 0]
        leaves = min(ratios)[2]
        basis[leaves] = enters
        pivot = table[leaves] = [x / table[leaves][enters] for x in table[leaves]]
        for at, row in enumerate(table):
            if at != leaves and row[enters]:
                table[at] = [x - row[enters] * y for x, y in zip(row, pivot, strict=True)]
        gains = [x - gains[enters] * y for x, y in zip(gains, pivot, strict=True)]
    return float(-gains[-1])


def _keeps_limits(network: Network, plan: MulticastPlan) -> bool:
    rows, bounds = _limits(network, plan.trees)
    return bool(np.all(rows @ np.array(plan.rates) <= bounds * (1 + TOLERANCE) + TOLERANCE))


def _network(rates: NDArray[np.float64], out: Sequence[float], into: Sequence[float]) -> Network:
    names = tuple(f"h{host}" for host in range(len(out)))
    return Network(names, ROOT, tuple(range(1, len(out))), rates, np.array(out), np.array(into))


RATES = st.integers(1, 20).map(float)
CAPACITIES = st.integers(1, 30).map(float) | st.just(float("inf"))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw up to 4 hosts; links may be dead, but those from the root are not, so that each host is reached."""
    size = draw(st.integers(2, 4))
    rates = np.zeros((size, size))
    for i, j in product(range(size), repeat=2):
        if i != j:
            rates[i, j] = draw(RATES if i == ROOT else RATES | st.just(0.0))
    capacities = st.lists(CAPACITIES, min_size=size, max_size=size)
    return _network(rates, draw(capacities), draw(capacities))


@pytest.mark.parametrize(("size", "count"), [(2, 1), (3, 3), (4, 16)])
def test_reference_has_all_trees(size: int, count: int) -> None:
    """Cayley's number of trees, as in section 3.1."""
    assert len(list(_trees(size))) == count == size ** (size - 2)


@settings(max_examples=80, deadline=None)
@given(network=networks())
def test_exact_equals_program_over_all_trees(network: Network) -> None:
    trees = list(_trees(network.size))
    plan = exact(network)
    optimum = _optimum(network, trees)
    assert set(plan.trees) <= set(trees)
    assert _keeps_limits(network, plan)
    assert plan.rate == pytest.approx(sum(plan.rates))
    assert plan.rate == pytest.approx(optimum, rel=TOLERANCE)
    assert plan.bound is not None
    assert plan.bound >= optimum * (1 - TOLERANCE)


@settings(max_examples=40, deadline=None)
@given(network=networks())
def test_balanced_is_best_for_trees_of_fpfr(network: Network) -> None:
    """Steps 2 to 4 of section 3.1: the program has the trees that FPFR finds, and looks at capacities as well."""
    candidates = fpfr(network)
    plan = balanced(network)
    assert set(plan.trees) <= set(candidates.trees)
    assert _keeps_limits(network, plan)
    assert plan.rate == pytest.approx(_optimum(network, candidates.trees), rel=TOLERANCE)
    assert plan.rate <= _optimum(network, list(_trees(network.size))) * (1 + TOLERANCE)


@settings(max_examples=40, deadline=None)
@given(network=networks())
def test_fpfr_reserves_bottlenecks_until_no_tree_is_left(network: Network) -> None:
    """Section 2.3: each tree takes its bottleneck of what is left of its links, and in the end no tree has any left."""
    left = np.array(network.rates)
    plan = fpfr(network)
    for tree, rate in zip(plan.trees, plan.rates, strict=True):
        edges = [(tree[host], host) for host in range(1, network.size)]
        assert rate == pytest.approx(min(left[edge] for edge in edges))
        for edge in edges:
            left[edge] -= rate
    assert not any(
        all(left[tree[host], host] > TOLERANCE for host in range(1, network.size)) for tree in _trees(network.size)
    )


def test_figure_2_and_3_of_paper() -> None:
    """FPFR assumes 12, and 9 is the optimum; with the wide links of Figure 2(a) and capacities of 10."""
    rates = np.array([[0.0, 10.0, 8.0], [10.0, 0.0, 4.0], [8.0, 4.0, 0.0]])
    network = _network(rates, [10.0] * 3, [10.0] * 3)
    assert fpfr(network).rate == pytest.approx(12.0)
    assert balanced(network).rate == pytest.approx(9.0)
    assert exact(network).rate == pytest.approx(9.0)
