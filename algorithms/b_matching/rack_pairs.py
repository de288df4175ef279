"""The paper's greedy where every pair of racks competes with the multicasts (Blast, section III-C.3 and Table I).

At 1000 racks there are 499,500 pairs, far too many to be objects. They stay in arrays, and two facts keep the work
small: a matching holds at most one pair per free port, so the best few thousand pairs fill most racks; and one look at
the arrays then drops every pair that has lost a rack. Only what is left is looked at again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.b_matching import greedy
from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.greedy import Selection
from algorithms.b_matching.group import Group

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

PAIRS_PER_PORT = 8
FEWEST_PAIRS = 1024
"""A round looks at so many pairs for each free port, and at no fewer than these."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Unicast requests between two racks: the vertices that pair i takes, and its weight. A pair needs no splitter.

    Raises ValueError unless there are as many of each and all weights are finite.
    """

    first: Integers
    second: Integers
    weight: Floats

    def __post_init__(self) -> None:
        if not self.first.shape == self.second.shape == self.weight.shape == (self.weight.size,):
            raise ValueError("a pair has two vertices and one weight")
        if not np.isfinite(self.weight).all():
            raise ValueError("a pair's weight must be finite")

    def group(self, number: int) -> Group:
        """Pair `number` as a group of that name."""
        ports = 1 << int(self.first[number]) | 1 << int(self.second[number])
        return Group(number, ports, racks=2, leaves=1, weight=float(self.weight[number]))


def select(groups: Iterable[Group], pairs: Pairs, feasibility: Feasibility) -> Selection:
    """What `greedy.select` picks from the groups followed by the pairs, in its order. `feasibility` is used up."""
    ordered = deque(sorted(groups, key=greedy.score, reverse=True))
    vertices = 1 + max(pairs.first.max(initial=-1), pairs.second.max(initial=-1))
    selected: Selection = []
    rest: Integers = np.arange(pairs.weight.size)
    while rest.size:
        left = np.array([max(0, feasibility.left(vertex)) for vertex in range(vertices)])
        free = left > 0
        rest = rest[free[pairs.first[rest]] & free[pairs.second[rest]]]
        head, rest = _best(pairs.weight, rest, max(FEWEST_PAIRS, PAIRS_PER_PORT * int(left.sum())))
        selected += _merged(ordered, pairs, head, feasibility)
    return selected + greedy.select_in_order(ordered, feasibility)


def _best(weight: Floats, rest: Integers, size: int) -> tuple[Integers, Integers]:
    """The `size` heaviest of `rest`, heaviest first and at equal weights the first first; and the others."""
    weights = weight[rest]
    chosen = np.ones(rest.size, dtype=np.bool_)
    if rest.size > size:
        threshold = np.partition(weights, -size)[-size]
        chosen = weights > threshold
        chosen[np.flatnonzero(weights == threshold)[: size - np.count_nonzero(chosen)]] = True
    order = np.argsort(-weights[chosen], kind="stable")
    return rest[chosen][order], rest[~chosen]


def _merged(ordered: deque[Group], pairs: Pairs, head: Integers, feasibility: Feasibility) -> Selection:
    """The greedy over the pairs of `head` and the groups that come before one of them; groups win ties."""
    selected: Selection = []
    next_score = greedy.score(ordered[0]) if ordered else -math.inf
    columns = (pairs.first[head], pairs.second[head], pairs.weight[head] / 2)
    for number, first, second, score in zip(head.tolist(), *(column.tolist() for column in columns), strict=True):
        while next_score >= score:
            selected += greedy.select_in_order([ordered.popleft()], feasibility)
            next_score = greedy.score(ordered[0]) if ordered else -math.inf
        if not feasibility.full & (1 << first | 1 << second):
            selected += greedy.select_in_order([pairs.group(number)], feasibility)
    return selected
