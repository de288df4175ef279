"""Splitter trees of any size: the choice is sufficient, minimal and connected."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.splitter_tree import choose_splitters, max_leaves, shallowest, splitters_needed
from tests.support.simulators.matching import plain_pieces

POOLS = st.dictionaries(st.integers(2, 16), st.integers(0, 6), max_size=4)
LIMITS = st.none() | st.integers(0, 8)


@given(st.integers(0, 70), POOLS, LIMITS, st.integers(0, 5))
def test_choice_equals_plain_rule(leaves, pool, max_splitters, free_outputs):
    sizes = [fan_out for fan_out, count in pool.items() for _ in range(count)]
    assert choose_splitters(leaves, pool, max_splitters, free_outputs) == plain_pieces(
        leaves, sizes, max_splitters, free_outputs
    )


@given(st.integers(1, 70), POOLS, LIMITS)
def test_choice_exists_exactly_up_to_max_leaves(leaves, pool, max_splitters):
    assert (choose_splitters(leaves, pool, max_splitters) is not None) == (leaves <= max_leaves(pool, max_splitters))


@given(st.integers(2, 300), st.integers(2, 20), st.integers(0, 5))
def test_one_size_needs_number_of_splitters_of_paper(racks, fan_out, spare):
    needed = splitters_needed(racks, fan_out)
    assert choose_splitters(racks - 1, {fan_out: needed + spare}) == (fan_out,) * needed
    if needed:
        assert choose_splitters(racks - 1, {fan_out: needed - 1}) is None


@given(st.lists(st.integers(2, 9), max_size=8), st.data())
def test_every_leaf_is_connected_to_root(fan_out, data):
    leaves = data.draw(st.integers(1, 1 + sum(w - 1 for w in fan_out)))
    tree = shallowest(leaves, fan_out)
    assert sorted(tree.fan_out) == sorted(fan_out)
    assert len(tree.leaves) == leaves
    used = [*tree.feeds, *tree.leaves]
    assert len(used) == len(set(used)), "an output feeds one thing only"
    depths = [tree.depth(leaf) for leaf in tree.leaves]
    assert depths == sorted(depths), "shallowest first"


LARGEST_COUNT = 6


def largest_group(fan_out: int, splitters: int) -> int:
    """Return the paper's constraint 1: the most racks, sender's included, that 1:`fan_out` splitters can join."""
    return splitters * (fan_out + 1) - 2 * (splitters - 1)


@cache
def shapes(sizes: tuple[int, ...]) -> frozenset[tuple[int, ...]]:
    """Return the sorted depths of all outputs, for every order and place of splitters of these sizes."""
    found = {(0,)}
    for size in sizes:
        found = {
            tuple(sorted([*outputs[:place], *outputs[place + 1 :], *[outputs[place] + 1] * size]))
            for outputs in found
            for place in range(len(outputs))
        }
    return frozenset(found)


def min_depth(leaves: int, sizes: tuple[int, ...]) -> int:
    """Return the minimum depth of the deepest of `leaves` leaves over all orders and shapes."""
    return min(
        outputs[leaves - 1]
        for order in set(itertools.permutations(sizes))
        for outputs in shapes(order)
        if len(outputs) >= leaves
    )


def min_count(leaves: int, fan_out: int) -> int:
    return next(m for m in range(100) if any(len(outputs) >= leaves for outputs in shapes((fan_out,) * m)))


SMALL = [(fan_out, racks) for fan_out in range(2, 7) for racks in range(2, 2 + LARGEST_COUNT * (fan_out - 1) + 1)]


@pytest.mark.parametrize(("fan_out", "racks"), [case for case in SMALL if splitters_needed(case[1], case[0]) <= 6])
def test_count_and_depth_are_minimal_over_all_shapes(fan_out, racks):
    needed = splitters_needed(racks, fan_out)
    assert needed == min_count(racks - 1, fan_out)
    tree = shallowest(racks - 1, [fan_out] * needed)
    assert max(map(tree.depth, tree.leaves)) == min_depth(racks - 1, (fan_out,) * needed)


@pytest.mark.parametrize(
    "sizes", [s for n in range(1, 5) for s in itertools.combinations_with_replacement((2, 3, 4, 5), n)], ids=str
)
def test_mixed_sizes_have_minimal_depth(sizes):
    outputs = 1 + sum(sizes) - len(sizes)
    for leaves in range(outputs - min(sizes) + 2, outputs + 1):  # none of them is superfluous
        tree = shallowest(leaves, sizes)
        assert max(map(tree.depth, tree.leaves)) == min_depth(leaves, sizes), leaves


def test_one_leaf_needs_no_splitter():
    tree = shallowest(1, [])
    assert (tree.feeds, tree.leaves) == ((), (None,))
    assert tree.depth(None) == 0


def test_too_few_outputs_are_an_error():
    with pytest.raises(ValueError, match="5 outputs cannot serve 6 leaves"):
        shallowest(6, [4, 2])


def test_worked_numbers_of_the_paper():
    assert [largest_group(4, k) for k in (1, 2, 3, 4)] == [5, 8, 11, 14]
    assert splitters_needed(3, 4) == 1, "section VI: each group of three racks takes one of the 40 splitters"
    assert splitters_needed(2, 4) == 0, "two racks: a cross-connect"
    assert splitters_needed(1, 2) == 0, "one rack: nothing, not minus one"
    assert splitters_needed(8, 4) == 2, "seven receiving racks over two cascaded 1:4"


def test_depth_is_exact_where_floating_logarithms_are_not():
    tree = shallowest(125, [5] * splitters_needed(126, 5))
    assert max(map(tree.depth, tree.leaves)) == 3


@pytest.mark.parametrize("fan_out", [2, 4, 8, 16, 64])
def test_constraint_1_is_a_limit_on_the_count(fan_out):
    """The paper's r <= k(N + 1) - 2(k - 1) is equivalent to m <= k, for every group of two racks and more."""
    for limit in range(60):
        for racks in range(2, 400):
            assert (racks <= largest_group(fan_out, limit)) == (splitters_needed(racks, fan_out) <= limit)


@pytest.mark.parametrize(
    ("receivers", "levels"), [(1, 0), (4, 1), (5, 2), (16, 2), (17, 3), (64, 3), (65, 4), (125, 4)]
)
def test_depth_of_a_tree_of_1_to_4_is_the_logarithm_rounded_up(receivers, levels):
    tree = shallowest(receivers, [4] * splitters_needed(receivers + 1, 4))
    assert max(map(tree.depth, tree.leaves)) == levels
