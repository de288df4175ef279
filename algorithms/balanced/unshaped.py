"""The rates of trees without traffic shaping: every edge of every tree is a competing stream.

Streams share paths and access links max-min fairly, as long-lived TCP streams do; a tree is as fast as its slowest edge
(section 2.3 of the paper, its Figure 2b).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan, Tree, ends

ROUNDING = 1e-12
"""Links whose room differs by rounding alone are full at the same time."""


def unshaped(network: Network, trees: Sequence[Tree]) -> MulticastPlan:
    """Return these trees at the rates that they reach when all of them are used at once.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    trees : sequence of Tree
        Each lists the parents of all hosts.

    Returns
    -------
    Plan
        Rates that are max-min fair between streams, without a bound.

    Notes
    -----
    As many rounds as there are different bottlenecks, each O(streams). Balanced multicasting, section 2.3.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> unshaped(network, [(-1, 0, 0)]).rates
    (5.0,)
    """
    pairs = [ends(tree) for tree in trees]
    heads = np.concatenate([heads for heads, _ in pairs])
    tails = np.concatenate([tails for _, tails in pairs])
    size = network.size
    # Resources of a stream: the sender's access link, the receiver's, and the path.
    passes = np.stack((tails, size + heads, 2 * size + tails * size + heads))
    rates = _fair(passes, np.concatenate((network.out, network.into, network.rates.ravel())))
    firsts = np.cumsum([0, *(len(heads) for heads, _ in pairs[:-1])])
    return MulticastPlan(tuple(trees), tuple(np.minimum.reduceat(rates, firsts).tolist()))


def _fair(passes: np.ndarray[tuple[int, ...], np.dtype[np.intp]], capacities: np.ndarray) -> np.ndarray:
    """Return the max-min fair rates of streams (columns of `passes`: the resources of each) by raising all together."""
    left = capacities.astype(np.float64)
    rates = np.zeros(passes.shape[1])
    rising = np.ones(passes.shape[1], bool)
    level = 0.0
    while rising.any():
        streams = np.bincount(passes[:, rising].ravel(), minlength=len(left))
        shared = streams > 0
        rooms = left[shared] / streams[shared]
        step = rooms.min()
        level += step
        rates[rising] = level
        left[shared] -= step * streams[shared]
        full = np.zeros(len(left), bool)
        full[np.flatnonzero(shared)[rooms <= step * (1 + ROUNDING)]] = True
        rising &= ~full[passes].any(axis=0)
    return rates
