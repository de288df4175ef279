"""The rounds in which hosts measure each other, against NetworkX."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from blast_client.capacities.rounds import link_rounds


@given(st.integers(2, 40), st.integers(0, 39))
def test_rounds_are_matchings_and_make_the_complete_digraph_without_the_way_back(count: int, place: int) -> None:
    hosts = [f"h{number}" for number in range(count)]
    root = hosts[place % count]
    complete = nx.complete_graph(hosts, nx.DiGraph)
    rounds = link_rounds(hosts, root)
    for pairs in rounds:
        assert pairs and nx.is_matching(nx.Graph(complete), {tuple(pair) for pair in pairs})
    played = [pair for pairs in rounds for pair in pairs]
    assert len(played) == len(set(played))
    assert set(played) == {(start, end) for start, end in complete.edges if end != root}


@given(st.integers(2, 40))
def test_there_are_no_more_rounds_than_there_must_be(count: int) -> None:
    """Who does not rest takes part in each: as source and as target of every other host."""
    hosts = [f"h{number}" for number in range(count)]
    assert len(link_rounds(hosts, "h0")) <= 2 * (count - 1 if count % 2 == 0 else count)
