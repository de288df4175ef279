"""The rounds in which hosts measure each other, against NetworkX."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from blast_client.capacities.rounds import link_rounds


@given(st.integers(2, 40), st.integers(0, 39))
def test_rounds_are_matchings_that_cover_all_links_except_into_root(count: int, place: int) -> None:
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
def test_number_of_rounds_is_minimal(count: int) -> None:
    # Each busy host takes part in every round: once as source and once as target of each other host.
    hosts = [f"h{number}" for number in range(count)]
    assert len(link_rounds(hosts, "h0")) <= 2 * (count - 1 if count % 2 == 0 else count)
