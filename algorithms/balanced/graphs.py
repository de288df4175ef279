"""Conversion between networks or trees and NetworkX graphs."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx

from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import Network
from algorithms.balanced.plan import Tree, edges


def from_graph(graph: nx.DiGraph[str], root: str, receivers: Collection[str] | None = None) -> NamedNetwork:
    """Return the network of a graph: edges have a `rate`, nodes may have an `out` and an `in` capacity.

    Parameters
    ----------
    graph : networkx.DiGraph
        Nodes are names; rates and capacities in any one unit.
    root : str
        The host that has the data.
    receivers : collection of str, optional
        None: all hosts but the root.

    Returns
    -------
    NamedNetwork
        Pass its `numbered()` to the algorithms; that call raises the exceptions for an invalid network.

    Examples
    --------
    >>> graph = nx.DiGraph([("a", "b", {"rate": 10.0})])
    >>> from_graph(graph, "a").numbered().rates.tolist()
    [[0.0, 10.0], [0.0, 0.0]]
    """
    out, into = ({node: data[key] for node, data in graph.nodes(data=True) if key in data} for key in ("out", "in"))
    return NamedNetwork(list(graph), root, list(graph.edges(data="rate")), receivers, out, into)


def tree_graph(network: Network, tree: Tree) -> nx.DiGraph[str]:
    """Return the tree over the names of its hosts."""
    return nx.DiGraph((network.hosts[sender], network.hosts[receiver]) for sender, receiver in edges(tree))
