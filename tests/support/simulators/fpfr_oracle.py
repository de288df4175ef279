"""FPFR by section 2.3 of the paper alone, in plain Python, for every order of its searches on small networks.

Rates are small integers, so that sums are exact; access links have no limit, and host 0 sends to all others. An
order of the paths decides a search only among the paths that leave the same host. So all permutations of the paths
amount to `fixed_orders`: a permutation of the targets at each host. `best` and `all_forests` are wider: they may
choose again at each step of each search.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache

Links = tuple[tuple[tuple[int, int], int], ...]
"""((from, to), bandwidth left) for each path with bandwidth, sorted."""
Edges = frozenset[tuple[int, int]]


def links_of(rates: Sequence[Sequence[int]]) -> Links:
    """Return the paths with bandwidth; none leads back to the root."""
    size = range(len(rates))
    return tuple(((i, j), rates[i][j]) for i in size for j in size if j not in {0, i} and rates[i][j] > 0)


@cache
def spanning_searches(size: int, links: Links) -> frozenset[Edges]:
    """Return the tree of each depth-first search from host 0 that reaches all hosts, whatever it visits next."""
    targets: dict[int, list[int]] = {}
    for (start, end), _ in links:
        targets.setdefault(start, []).append(end)
    found = set()

    def visit(stack: tuple[int, ...], edges: Edges, seen: frozenset[int]) -> None:
        if len(seen) == size:
            found.add(edges)
            return
        while stack:
            ahead = [end for end in targets.get(stack[-1], ()) if end not in seen]
            for end in ahead:
                visit((*stack, end), edges | {(stack[-1], end)}, seen | {end})
            if ahead:
                return
            stack = stack[:-1]

    visit((0,), frozenset(), frozenset({0}))
    return frozenset(found)


def reserved(links: Links, tree: Edges) -> tuple[int, Links]:
    """Return the bottleneck of a tree, and the paths with the bandwidth that it leaves."""
    left = dict(links)
    bottleneck = min(left[edge] for edge in tree)
    rest = ((edge, rate - bottleneck * (edge in tree)) for edge, rate in links)
    return bottleneck, tuple((edge, rate) for edge, rate in rest if rate)


@cache
def best(size: int, links: Links) -> int:
    """Return the highest rate that FPFR reserves with any choices at all."""
    steps = (reserved(links, tree) for tree in spanning_searches(size, links))
    return max((rate + best(size, left) for rate, left in steps), default=0)


@cache
def all_forests(size: int, links: Links) -> frozenset[frozenset[Edges]]:
    """Return each set of trees that FPFR may find."""
    trees = spanning_searches(size, links)
    if not trees:
        return frozenset({frozenset()})
    return frozenset(rest | {tree} for tree in trees for rest in all_forests(size, reserved(links, tree)[1]))


def fixed_orders(size: int) -> list[tuple[tuple[int, ...], ...]]:
    """Return each choice of an order of targets for each host: all permutations of the paths, as far as they differ."""
    others = [[end for end in range(1, size) if end != start] for start in range(size)]
    return list(itertools.product(*(itertools.permutations(ends) for ends in others)))


def with_order(size: int, links: Links, order: Sequence[Sequence[int]]) -> int:
    """Return the rate that FPFR reserves if each search visits the targets of a host in this order."""
    total = 0
    while (tree := _search(size, dict(links), order)) is not None:
        rate, links = reserved(links, tree)
        total += rate
    return total


def _search(size: int, left: dict[tuple[int, int], int], order: Sequence[Sequence[int]]) -> Edges | None:
    seen, stack, tree = {0}, [0], set()
    while stack and len(seen) < size:
        ahead = [end for end in order[stack[-1]] if end not in seen and (stack[-1], end) in left]
        if not ahead:
            stack.pop()
            continue
        tree.add((stack[-1], ahead[0]))
        seen.add(ahead[0])
        stack.append(ahead[0])
    return frozenset(tree) if len(seen) == size else None


def narrowest_cut(rates: Sequence[Sequence[int]]) -> int:
    """Return the optimum without limits at the hosts: the narrowest cut between host 0 and any other (Edmonds)."""
    size = len(rates)
    far_sides = (set(side) for count in range(1, size) for side in itertools.combinations(range(1, size), count))
    return min(sum(rates[i][j] for i in range(size) if i not in far for j in far) for far in far_sides)


def matrices(size: int, values: Sequence[int]) -> Iterator[list[list[int]]]:
    """Yield each network with these rates in which host 0 reaches all others."""
    places = [(i, j) for i in range(size) for j in range(1, size) if i != j]
    for rates in itertools.product(values, repeat=len(places)):
        rows = [[0] * size for _ in range(size)]
        for (i, j), rate in zip(places, rates, strict=True):
            rows[i][j] = rate
        if narrowest_cut(rows) > 0:
            yield rows
