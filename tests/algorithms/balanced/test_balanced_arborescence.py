"""The minimum-cost arborescence against all ways to grow one, and NetworkX where no costs are the same.

With ties NetworkX 3.6.1 finds no arborescence, or a dearer one, in some graphs that have one.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.balanced.arborescence import NoArborescenceError, minimum_arborescence, total_cost
from algorithms.balanced.plan import NO_HOST
from tests.support.simulators.balanced import reaches


@st.composite
def graphs(draw):
    """(costs, root): with ties, arcs that cost nothing, and arcs that are not there."""
    size = draw(st.integers(1, 9))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, draw(st.sampled_from([2, 4, 1000])), (size, size)).astype(float)
    costs[rng.random((size, size)) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.inf
    return costs, draw(st.integers(0, size - 1))


def as_networkx(costs, root: int) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(costs)))
    for (start, end), cost in np.ndenumerate(costs):
        if end not in {start, root} and cost < np.inf:
            graph.add_edge(start, end, weight=cost)
    return graph


def min_cost(costs, root: int) -> float:
    """Grown node by node, in every order: the cheapest way to have reached each set of nodes."""
    cheapest = {1 << root: 0.0}
    for some in range(1 << len(costs)):
        if some not in cheapest:
            continue
        inside = [node for node in range(len(costs)) if some >> node & 1]
        for node in set(range(len(costs))) - set(inside):
            more, cost = some | 1 << node, cheapest[some] + costs[inside, node].min()
            cheapest[more] = min(cost, cheapest.get(more, np.inf))
    return float(cheapest[(1 << len(costs)) - 1])


@given(graphs())
def test_minimum_arborescence_has_cost_of_exhaustive_search(graph):
    costs, root = graph
    known = as_networkx(costs, root)
    if len(nx.descendants(known, root)) < len(costs) - 1:
        with pytest.raises(NoArborescenceError):
            minimum_arborescence(costs, root)
        return
    before = costs.copy()
    parents = minimum_arborescence(costs, root)
    assert (costs == before).all()
    assert [host for host, parent in enumerate(parents) if parent == NO_HOST] == [root]
    assert all(reaches(tuple(parents), host, root) for host in range(len(costs)))
    assert total_cost(costs, parents) == min_cost(costs, root)


def test_minimum_arborescence_agrees_with_networkx_on_32_nodes():
    costs = np.random.default_rng(1).random((32, 32))
    best = nx.minimum_spanning_arborescence(as_networkx(costs, 0))
    expected = sum(cost for _, _, cost in best.edges(data="weight"))
    assert total_cost(costs, minimum_arborescence(costs, 0)) == pytest.approx(expected)
