"""Splitter trees of any size: what was chosen is enough, no more than needed, and hangs together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from algorithms.splitter_tree import choose_splitters, most_leaves, shallowest, splitters_needed

POOLS = st.dictionaries(st.integers(2, 16), st.integers(0, 6), max_size=4)
LIMITS = st.none() | st.integers(0, 8)


def rule_of_the_paper_with_several_sizes(leaves, pool, most, open_legs):
    """Plainly: the smallest that covers what is missing, else the largest that is left."""
    left = sorted(ways for ways, count in pool.items() for _ in range(count))
    taken = []
    while open_legs < leaves:
        if not left or open_legs < 1 or (most is not None and len(taken) >= most):
            return None
        covering = [ways for ways in left if open_legs + ways - 1 >= leaves]
        ways = covering[0] if covering else left[-1]
        left.remove(ways)
        taken.append(ways)
        open_legs += ways - 1
    return tuple(taken)


@given(st.integers(0, 70), POOLS, LIMITS, st.integers(0, 5))
def test_the_rule_is_kept(leaves, pool, most, open_legs):
    assert choose_splitters(leaves, pool, most, open_legs) == rule_of_the_paper_with_several_sizes(
        leaves, pool, most, open_legs
    )


@given(st.integers(1, 70), POOLS, LIMITS)
def test_a_choice_exists_exactly_where_the_most_leaves_suffice(leaves, pool, most):
    assert (choose_splitters(leaves, pool, most) is not None) == (leaves <= most_leaves(pool, most))


@given(st.integers(2, 300), st.integers(2, 20), st.integers(0, 5))
def test_one_size_takes_the_papers_number(racks, ways, spare):
    needed = splitters_needed(racks, ways)
    assert choose_splitters(racks - 1, {ways: needed + spare}) == (ways,) * needed
    if needed:
        assert choose_splitters(racks - 1, {ways: needed - 1}) is None


@given(st.lists(st.integers(2, 9), max_size=8), st.data())
def test_every_leaf_hangs_on_the_root(ways, data):
    leaves = data.draw(st.integers(1, 1 + sum(w - 1 for w in ways)))
    tree = shallowest(leaves, ways)
    assert sorted(tree.ways) == sorted(ways)
    assert len(tree.leaves) == leaves
    used = [*tree.feeds, *tree.leaves]
    assert len(used) == len(set(used)), "a leg feeds one thing only"
    depths = [tree.depth(leaf) for leaf in tree.leaves]
    assert depths == sorted(depths), "shallowest first"
