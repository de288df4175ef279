"""Balanced multicast: random networks, all their trees, and the constraints of every plan."""

from __future__ import annotations

import math

import highspy
import numpy as np
from hypothesis import strategies as st

from algorithms.balanced.network import DisconnectedError, Network
from algorithms.balanced.plan import NO_HOST, MulticastPlan, Tree, loads
from algorithms.balanced.resources import resources

ROUNDING = 1e-9


def make(rates, out=math.inf, into=math.inf, receivers=None) -> Network:
    """Return a network from rows of rates; a capacity is one number for all, or a list."""
    size = len(rates)
    return Network(
        tuple(f"h{host}" for host in range(size)),
        0,
        tuple(range(1, size)) if receivers is None else tuple(receivers),
        np.array(rates, float),
        np.broadcast_to(np.array(out, float), size).copy(),
        np.broadcast_to(np.array(into, float), size).copy(),
    )


def figure_2() -> Network:
    """Return the paper's example: root, 1 and 2; links 10, 8 and 4 in both directions; every access link 10."""
    return make([[0, 10, 8], [10, 0, 4], [8, 4, 0]], 10, 10)


@st.composite
def networks(draw, min_size: int = 2, max_size: int = 6, to_all: bool = True) -> Network:
    """Draw networks with dead links and ties, of numbers large and small, with and without limits at the hosts."""
    size = draw(st.integers(min_size, max_size))
    scale = draw(st.sampled_from([1.0, 1e-6, 1e9]))
    rate = st.one_of(st.just(0.0), st.integers(1, 4), st.floats(0.01, 100)).map(lambda value: value * scale)
    capacity = st.one_of(st.just(math.inf), st.integers(1, 8), st.floats(0.1, 200)).map(lambda value: value * scale)
    rates = [[0.0 if i == j else draw(rate) for j in range(size)] for i in range(size)]
    receivers = range(1, size) if to_all else draw(st.sets(st.integers(1, size - 1), min_size=1))
    caps = ([draw(capacity) for _ in range(size)] for _ in range(2))
    try:
        return make(rates, *caps, sorted(receivers))
    except DisconnectedError:
        # A chain that is always there.
        for host in range(1, size):
            rates[host - 1][host] = scale
        return make(rates, math.inf, math.inf, sorted(receivers))


def check(network: Network, plan: MulticastPlan) -> None:
    """Check that a plan's trees reach every receiver over working links, within every limit, below the bound."""
    assert len(plan.trees) == len(plan.rates) == len(set(plan.trees))
    for tree, rate in zip(plan.trees, plan.rates, strict=True):
        assert rate > 0
        check_tree(network, tree)
    sums = loads(network, plan)
    for load, limit in zip(sums, (network.rates, network.out, network.into), strict=True):
        assert (load <= limit * (1 + ROUNDING)).all()
    assert plan.bound is None or plan.rate <= plan.bound * (1 + ROUNDING)


def check_tree(network: Network, tree: Tree) -> None:
    assert tree[network.root] == NO_HOST
    used = {parent for parent in tree if parent != NO_HOST}
    for host, parent in enumerate(tree):
        if parent == NO_HOST:
            assert host == network.root or (host not in network.receivers and host not in used)
            continue
        assert network.rates[parent, host] > 0
        assert host in network.receivers or host in used, "a relay without receivers below it"
        assert reaches(tree, host, network.root)


def reaches(tree: Tree, host: int, root: int) -> bool:
    for _ in tree:
        host = tree[host] if host != root else root
    return host == root


def all_trees(size: int, root: int = 0) -> np.ndarray:
    """Return the parents in each of the size ** (size - 2) trees over all hosts, one tree a row."""
    others = [host for host in range(size) if host != root]
    parents = np.full((size ** (size - 1), size), root, np.int8)
    parents[:, others] = np.indices((size,) * (size - 1), np.int8).reshape(size - 1, -1).T
    ancestors = parents
    for _ in range(size.bit_length()):
        ancestors = np.take_along_axis(ancestors, ancestors, axis=1)
    trees = parents[(ancestors == root).all(axis=1)].astype(int)
    trees[:, root] = NO_HOST
    return trees


def brute_force(network: Network) -> float:
    """Return the maximum rate over all trees, by the paper's linear program with one variable for each of them."""
    rows = resources(network)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for limit in rows.limits:
        solver.addRow(-math.inf, limit, 0, [], [])
    for use in map(rows.use, living_trees(network)):
        solver.addCol(1.0, 0.0, math.inf, len(use.rows), use.rows, use.amounts)
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value * rows.unit


def living_trees(network: Network) -> list[Tree]:
    """Return all trees over links that carry something."""
    trees = map(tuple, all_trees(network.size).tolist())
    return [t for t in trees if all(network.widths[p, host] > 0 for host, p in enumerate(t) if p != NO_HOST)]
