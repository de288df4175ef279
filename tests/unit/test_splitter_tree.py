"""Splitter trees: the paper's arithmetic, and every tree shape there is, counted by brute force."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from algorithms.splitter_tree import choose_splitters, most_leaves, shallowest, splitters_needed

LARGEST_COUNT = 6


def largest_group(ways: int, splitters: int) -> int:
    """The paper's constraint 1: the most racks, sender's included, that `splitters` 1:`ways` splitters can join."""
    return splitters * (ways + 1) - 2 * (splitters - 1)


@cache
def shapes(sizes: tuple[int, ...]) -> frozenset[tuple[int, ...]]:
    """The depths of all legs (sorted), for every way to hang splitters of these sizes, in any order and place."""
    found = {(0,)}
    for size in sizes:
        found = {
            tuple(sorted([*legs[:place], *legs[place + 1 :], *[legs[place] + 1] * size]))
            for legs in found
            for place in range(len(legs))
        }
    return frozenset(found)


def least_depth(leaves: int, sizes: tuple[int, ...]) -> int:
    """The least depth of the deepest of `leaves` leaves over all orders and shapes."""
    return min(
        legs[leaves - 1]
        for order in set(itertools.permutations(sizes))
        for legs in shapes(order)
        if len(legs) >= leaves
    )


def least_count(leaves: int, ways: int) -> int:
    return next(m for m in range(100) if any(len(legs) >= leaves for legs in shapes((ways,) * m)))


SMALL = [(ways, racks) for ways in range(2, 7) for racks in range(2, 2 + LARGEST_COUNT * (ways - 1) + 1)]


@pytest.mark.parametrize(("ways", "racks"), [case for case in SMALL if splitters_needed(case[1], case[0]) <= 6])
def test_count_and_depth_are_the_least_of_all_shapes(ways, racks):
    needed = splitters_needed(racks, ways)
    assert needed == least_count(racks - 1, ways)
    tree = shallowest(racks - 1, [ways] * needed)
    assert max(map(tree.depth, tree.leaves)) == least_depth(racks - 1, (ways,) * needed)


@pytest.mark.parametrize(
    "sizes", [s for n in range(1, 5) for s in itertools.combinations_with_replacement((2, 3, 4, 5), n)], ids=str
)
def test_mixed_sizes_hang_as_shallow_as_can_be(sizes):
    legs = 1 + sum(sizes) - len(sizes)
    for leaves in range(legs - min(sizes) + 2, legs + 1):  # none of them is superfluous
        tree = shallowest(leaves, sizes)
        assert max(map(tree.depth, tree.leaves)) == least_depth(leaves, sizes), leaves


def test_a_shape_is_a_tree():
    tree = shallowest(9, [2, 4, 4, 3])
    assert tree.ways == (4, 4, 3, 2)
    used = [leg for leg in (*tree.feeds, *tree.leaves) if leg is not None]
    assert len(used) == len(set(used)), "a leg feeds one thing only"
    assert tree.feeds[0] is None
    for child, feed in enumerate(tree.feeds[1:], 1):
        assert feed is not None
        assert feed[0] < child
        assert 0 <= feed[1] < tree.ways[feed[0]]


def test_one_leaf_needs_no_splitter():
    tree = shallowest(1, [])
    assert (tree.feeds, tree.leaves) == ((), (None,))
    assert tree.depth(None) == 0


def test_too_few_legs_are_an_error():
    with pytest.raises(ValueError, match="5 legs cannot serve 6 leaves"):
        shallowest(6, [4, 2])


@pytest.mark.parametrize("ways", [2, 4, 8, 16, 64])
def test_constraint_1_is_a_limit_on_the_count(ways):
    """The paper's r <= k(N + 1) - 2(k - 1) says the same as m <= k, for every group of two racks and more."""
    for most in range(60):
        for racks in range(2, 400):
            assert (racks <= largest_group(ways, most)) == (splitters_needed(racks, ways) <= most)


def test_worked_numbers_of_the_paper():
    assert [largest_group(4, k) for k in (1, 2, 3, 4)] == [5, 8, 11, 14]
    assert splitters_needed(3, 4) == 1, "section VI: each group of three racks takes one of the 40 splitters"
    assert splitters_needed(2, 4) == 0, "two racks: a cross-connect"
    assert splitters_needed(1, 2) == 0, "one rack: nothing, not minus one"
    assert splitters_needed(8, 4) == 2, "seven receiving racks over two cascaded 1:4"


@pytest.mark.parametrize(
    ("receivers", "levels"), [(1, 0), (4, 1), (5, 2), (16, 2), (17, 3), (64, 3), (65, 4), (125, 4)]
)
def test_depth_of_a_tree_of_1_to_4_is_the_logarithm_rounded_up(receivers, levels):
    tree = shallowest(receivers, [4] * splitters_needed(receivers + 1, 4))
    assert max(map(tree.depth, tree.leaves)) == levels


def test_depth_is_exact_where_floating_logarithms_are_not():
    tree = shallowest(125, [5] * splitters_needed(126, 5))
    assert max(map(tree.depth, tree.leaves)) == 3


@pytest.mark.parametrize(
    ("leaves", "pool", "expected"),
    [
        (1, {4: 1}, ()),
        (2, {4: 1, 2: 1}, (2,)),
        (3, {4: 1, 2: 1}, (4,)),
        (5, {4: 1, 2: 1}, (4, 2)),
        (6, {4: 2, 16: 1}, (16,)),
        (18, {4: 2, 16: 1}, (16, 4)),
        (6, {4: 1, 2: 1}, None),
        (4, {4: 0}, None),
        (2, {}, None),
    ],
)
def test_the_smallest_that_covers_else_the_largest_left(leaves, pool, expected):
    before = dict(pool)
    assert choose_splitters(leaves, pool) == expected
    assert pool == before


def test_a_limit_on_the_count_is_kept():
    assert choose_splitters(7, {4: 9}, most_splitters=2) == (4, 4)
    assert choose_splitters(8, {4: 9}, most_splitters=2) is None
    assert choose_splitters(2, {4: 9}, most_splitters=0) is None


def test_open_legs_are_used_first():
    assert choose_splitters(2, {4: 1}, open_legs=2) == ()
    assert choose_splitters(3, {4: 1}, open_legs=2) == (4,)
    assert choose_splitters(1, {4: 1}, open_legs=0) is None, "a splitter must hang somewhere"


def test_most_leaves_takes_the_largest():
    assert most_leaves({4: 2, 2: 1}, None) == 8
    assert most_leaves({4: 2, 2: 1}, 1) == 4
    assert most_leaves({4: 2}, 0) == 1
    assert most_leaves({}, None) == 1
