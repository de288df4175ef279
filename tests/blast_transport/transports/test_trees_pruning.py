"""Pruned trees without lost hosts are valid trees over existing edges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_transport.links.dialling import SOURCE
from blast_transport.transports.choices import Tree
from blast_transport.transports.trees.pruning import pruned

HOSTS = [f"h{number}" for number in range(8)]


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    order = draw(st.permutations(HOSTS))[: draw(st.integers(1, len(HOSTS)))]
    parents = {host: draw(st.sampled_from([SOURCE, *order[:place]])) for place, host in enumerate(order)}
    # The order of the hosts in the mapping is arbitrary.
    return Tree(1e6, {host: parents[host] for host in draw(st.permutations(order))})


edges = st.sets(st.tuples(st.sampled_from([SOURCE, *HOSTS]), st.sampled_from(HOSTS)), max_size=6)


def ancestors(tree: Tree, host: str) -> list[str]:
    way = []
    while host != SOURCE:
        host = tree.parents[host]
        way.append(host)
    return way


@given(trees(), st.sets(st.sampled_from(HOSTS)))
def test_remaining_host_is_attached_to_next_remaining_ancestor(tree: Tree, members: set[str]) -> None:
    found = pruned(tree, members, ())
    left = {host for host in tree.parents if host in members}
    assert (set() if found is None else set(found.parents)) == left
    for host in left:
        assert found is not None
        assert found.parents[host] == next(each for each in ancestors(tree, host) if each in left or each == SOURCE)


@given(trees(), edges)
def test_pruned_tree_avoids_broken_edges_and_keeps_reachable_hosts(tree: Tree, broken: set[tuple[str, str]]) -> None:
    found = pruned(tree, HOSTS, broken)
    placed = set() if found is None else set(found.parents)
    if found is not None:
        assert not {(parent, child) for child, parent in found.parents.items()} & broken
        # The constructor checks that each host has a path to the sender.
        assert Tree(found.rate, found.parents) == found
    for host in set(tree.parents) - placed:
        assert all((other, host) in broken for other in [SOURCE, *placed] if other in {*placed, *ancestors(tree, host)})


@given(trees())
def test_tree_without_losses_is_unchanged(tree: Tree) -> None:
    found = pruned(tree, HOSTS, ())
    assert found is not None
    assert found.parents == tree.parents
