"""Networks: rejected input, and conversion of names, clusters and graphs."""

from __future__ import annotations

import math
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.balanced.clusters import Cluster, ClusterHost, as_hosts, host_trees, steps
from algorithms.balanced.exact import exact
from algorithms.balanced.graphs import from_graph, tree_graph
from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import DisconnectedError, InvalidNetworkError, UnknownHostError
from tests.support.simulators.balanced import check, make

HOSTS = ["a", "b", "c"]
LINKS = [("a", "b", 10), ("a", "c", 8), ("b", "c", 4), ("c", "b", 4)]
NAN = math.nan


def named(**changes) -> NamedNetwork:
    return NamedNetwork(**({"hosts": HOSTS, "root": "a", "links": LINKS} | changes))


# -------------------------------------------------------------------------------------------------- rejected input

WRONG = {
    "cut off": (named(links=[("a", "b", 1)]), DisconnectedError, "no way of links .* leads from 'a' to 'c'"),
    "two cut off": (named(links=[]), DisconnectedError, "from 'a' to 'b', 'c'"),
    "dead link": (named(links=[("a", "b", 1), ("b", "c", 0)]), DisconnectedError, "from 'a' to 'c'"),
    "root cannot send": (named(out={"a": 0}), DisconnectedError, "from 'a' to 'b', 'c'"),
    "receiver cannot receive": (named(into={"c": 0}), DisconnectedError, "from 'a' to 'c'"),
    "negative rate": (
        named(links=[("a", "b", -1)]),
        InvalidNetworkError,
        "from 'a' to 'b' has the rate -1, which is no",
    ),
    "rate is nan": (named(links=[("a", "b", NAN)]), InvalidNetworkError, "has the rate nan"),
    "rate is infinite": (named(links=[("a", "b", math.inf)]), InvalidNetworkError, "has the rate inf"),
    "negative capacity": (named(out={"b": -3}), InvalidNetworkError, "the out capacity of 'b' is -3"),
    "capacity is nan": (named(into={"b": NAN}), InvalidNetworkError, "the in capacity of 'b' is nan"),
    "capacity is infinite": (
        named(out={"b": math.inf}),
        InvalidNetworkError,
        "the out capacity of 'b' is infinite: leave",
    ),
    "unknown root": (named(root="x"), UnknownHostError, "the root is 'x', which is not among the hosts"),
    "unknown receiver": (named(receivers=["x"]), UnknownHostError, "a receiver is 'x', which is not"),
    "unknown start": (named(links=[("x", "b", 1)]), UnknownHostError, "the start of a link is 'x'"),
    "unknown end": (named(links=[("a", "x", 1)]), UnknownHostError, "the end of a link is 'x'"),
    "unknown with out": (named(out={"x": 1}), UnknownHostError, "a host with an out capacity is 'x'"),
    "unknown with in": (named(into={"x": 1}), UnknownHostError, "a host with an in capacity is 'x'"),
    "root receives": (
        named(receivers=["b", "a"]),
        InvalidNetworkError,
        "the root 'a' is among the receivers: leave it out",
    ),
    "no receivers": (named(receivers=[]), InvalidNetworkError, "the receivers are empty"),
    "alone": (named(hosts=["a"], links=[]), InvalidNetworkError, "the receivers are empty"),
    "receiver twice": (named(receivers=["b", "b"]), InvalidNetworkError, "receiver 'b' is there twice"),
    "host twice": (named(hosts=["a", "b", "b"]), InvalidNetworkError, "host 'b' is there twice"),
    "link twice": (
        named(links=[*LINKS, ("a", "b", 1)]),
        InvalidNetworkError,
        "the link from 'a' to 'b' is there twice",
    ),
    "link to itself": (named(links=[*LINKS, ("b", "b", 1)]), InvalidNetworkError, "a link leads from 'b' to itself"),
}


@pytest.mark.parametrize(("network", "error", "sentence"), WRONG.values(), ids=WRONG)
def test_invalid_network_is_rejected_with_one_sentence(network, error, sentence):
    with pytest.raises(error, match=sentence) as refusal:
        network.numbered()
    assert "\n" not in str(refusal.value)


def test_disconnected_error_lists_unreachable_receivers():
    with pytest.raises(DisconnectedError) as refusal:
        named(links=[("b", "c", 1)]).numbered()
    assert refusal.value.receivers == ("b", "c")


def test_a_host_that_does_not_receive_may_be_cut_off():
    network = named(links=[("a", "b", 1)], receivers=["b"]).numbered()
    assert exact(named(hosts=["a", "b"], links=[("a", "b", 1)]).numbered()).rate == 1
    assert (network.receivers, network.to_all) == ((1,), False)


def test_names_become_numbers():
    network = named(out={"a": 10}, into={"c": 7}).numbered()
    assert (network.hosts, network.root, network.receivers) == (("a", "b", "c"), 0, (1, 2))
    assert network.rates.tolist() == [[0, 10, 8], [0, 0, 4], [0, 4, 0]]
    assert network.out.tolist() == [10, math.inf, math.inf]
    assert network.into.tolist() == [math.inf, math.inf, 7]
    assert network.widths.tolist() == [[0, 10, 7], [0, 0, 4], [0, 4, 0]]


def test_network_arrays_are_read_only():
    network = make([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="read-only"):
        network.rates[0, 1] = 2


# ----------------------------------------------------------------------------------------------------------- graphs


def test_networkx_graph_converts_to_network_and_trees_back():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("s", "x", 3.0), ("x", "y", 2.0), ("s", "y", 1.0)], weight="rate")
    graph.nodes["s"]["out"] = 4.0
    graph.nodes["y"]["in"] = 2.5
    network = from_graph(graph, "s").numbered()
    assert network.hosts == ("s", "x", "y")
    assert (network.out[0], network.into[2]) == (4.0, 2.5)
    for tree in exact(network).trees:
        drawn = tree_graph(network, tree)
        assert nx.is_arborescence(drawn)
        assert set(drawn.edges) <= set(graph.edges)


# --------------------------------------------------------------------------------------------------------- clusters


def das(nodes: int, wide_area: float) -> list[Cluster]:
    """Clusters of the paper's section 4.2: 100 Mbit/s a node, here 11.2 MB/s, behind one access link."""
    return [
        Cluster(
            name, tuple(ClusterHost(f"{name}{number}", 11.2, 11.2) for number in range(nodes)), wide_area, wide_area
        )
        for name in ("adam", "leiden", "delft")
    ]


def test_cluster_capacity_is_minimum_of_interfaces_and_access_link():
    members = (ClusterHost("x", 1, 2), ClusterHost("y", 3, 4))
    assert (Cluster("c", members).sends, Cluster("c", members).receives) == (4, 6)
    assert (Cluster("c", members, 3, 5).sends, Cluster("c", members, 3, 5).receives) == (3, 5)
    unlimited = as_hosts(
        [Cluster("c", (ClusterHost("x", math.inf, math.inf),)), *das(1, 5)[:1]], "c", [("c", "adam", 1)]
    )
    assert (unlimited.out, unlimited.into) == ({"adam": 5}, {"adam": 5})


def test_figure_5_of_the_paper():
    clusters = das(3, 1000)[:2]
    network = as_hosts(clusters, "adam", [("adam", "leiden", 30)]).numbered()
    found = steps(clusters, "adam1", network, exact(network))
    assert found.root_chain == ("adam1", "adam0", "adam2")
    assert [(one.sender, one.receiver) for one in found.streams] == [(f"adam{n}", f"leiden{n}") for n in range(3)]
    assert [one.rate for one in found.streams] == pytest.approx([10, 10, 10])
    assert found.chains == {
        "leiden0": ("leiden0", "leiden1", "leiden2"),
        "leiden1": ("leiden1", "leiden0", "leiden2"),
        "leiden2": ("leiden2", "leiden0", "leiden1"),
    }


interfaces = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4)


def drawn(given_clusters, seed):
    """Clusters of hosts with these interfaces, and paths of any rate between them all."""
    clusters = [
        Cluster(f"c{place}", tuple(ClusterHost(f"c{place}n{n}", out, into) for n, (out, into) in enumerate(members)))
        for place, members in enumerate(given_clusters)
    ]
    rng = np.random.default_rng(seed)
    names = [each.name for each in clusters]
    links = [(one, other, float(rng.integers(1, 20))) for one in names for other in names if one != other]
    return clusters, as_hosts(clusters, "c0", links).numbered()


@given(st.lists(interfaces, min_size=2, max_size=4), st.integers(0, 10**6))
def test_steps_respect_interfaces_and_deliver_every_tree_completely(given_clusters, seed):
    clusters, network = drawn(given_clusters, seed)
    plan = exact(network)
    check(network, plan)
    found = steps(clusters, "c0n0", network, plan)
    sent, received, arrived = defaultdict(float), defaultdict(float), defaultdict(list)
    for stream in found.streams:
        assert stream.rate == pytest.approx(plan.rates[stream.tree] * (stream.last - stream.first))
        sent[stream.sender] += stream.rate
        received[stream.receiver] += stream.rate
        arrived[stream.tree, stream.receiver.partition("n")[0]].append((stream.first, stream.last))
        assert set(found.chains[stream.receiver]) == {
            member.name
            for each in clusters
            for member in each.members
            if stream.receiver in {m.name for m in each.members}
        }
    for each in clusters:
        for member in each.members:
            assert sent[member.name] <= member.out * (1 + 1e-9)
            assert received[member.name] <= member.into * (1 + 1e-9)
    assert set(arrived) == {(tree, name) for tree in range(len(plan.trees)) for name in network.hosts[1:]}
    for spans in arrived.values():
        spans.sort()
        assert [spans[0][0], *(last for _, last in spans)] == [*(first for first, _ in spans), 1.0]


@given(st.lists(interfaces, min_size=2, max_size=3), st.integers(0, 999))
def test_host_trees_reach_every_host_within_interface_limits(given_clusters, seed):
    clusters, network = drawn(given_clusters, seed)
    plan = exact(network)
    limits = {member.name: member for each in clusters for member in each.members}
    trees = host_trees(clusters, "c0n0", network, plan)
    assert sum(tree.rate for tree in trees) == pytest.approx(plan.rate)
    sent, received = defaultdict(float), defaultdict(float)
    for tree in trees:
        assert set(tree.parents) == set(limits) - {"c0n0"}
        for host in tree.parents:
            passed = [host]
            while passed[-1] != "c0n0":
                passed.append(tree.parents[passed[-1]])
                assert len(passed) <= len(limits), "a cycle"
        for host, parent in tree.parents.items():
            if host.partition("n")[0] != parent.partition("n")[0]:
                sent[parent] += tree.rate
                received[host] += tree.rate
    assert all(load <= limits[host].out * (1 + 1e-6) for host, load in sent.items())
    assert all(load <= limits[host].into * (1 + 1e-6) for host, load in received.items())
