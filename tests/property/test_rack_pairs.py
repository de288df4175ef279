"""Multicasts and rack pairs from arrays against the plain greedy over all of them as objects."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.b_matching import greedy, rack_pairs
from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.rack_pairs import Pairs
from tests.property.test_b_matching_greedy import fabrics


@given(
    fabrics(),
    st.integers(0, 400),
    st.integers(0, 10**6),
    st.sampled_from(["continuous", "ties", "equal"]),
    st.sampled_from([1, 7, 1024]),
)
def test_same_selection_in_the_same_order_as_the_plain_greedy(fabric, count, seed, weights, fewest):
    groups, budgets = fabric
    rng = np.random.default_rng(seed)
    first = rng.integers(0, len(budgets), count)
    second = (first + rng.integers(1, len(budgets), count)) % len(budgets)
    weight = {
        "continuous": rng.lognormal(6, 1, count),
        "ties": rng.integers(1, 4, count) * 2.0,
        "equal": np.full(count, 600.0),
    }[weights]
    pairs = Pairs(first, second, weight)
    everything = [*groups, *(pairs.group(number) for number in range(count))]
    expected = greedy.select(everything, Feasibility(budgets, {4: 3}))
    # Small rounds, so that a small instance takes several of them.
    with mock.patch.multiple(rack_pairs, FEWEST_PAIRS=fewest, PAIRS_PER_PORT=1):
        feasibility = Feasibility(budgets, {4: 3})
        assert rack_pairs.select(groups, pairs, feasibility) == expected
    assert all(feasibility.fit(g) is None for g in everything if (g, ()) not in expected and g.leaves == 1)
