"""Exact search over wide groups that mostly exclude each other: a maximum-weight independent set, bit-parallel.

Where every port is single, a selection is a set of options of which no two share a port. Wide groups on any racks
nearly all conflict, so such sets are small and the relaxation says little (its bound is half as much again), while a
cover by cliques of the conflict graph bounds well: of each clique at most one can be served. The sets are integers
with a bit for each option, heaviest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from algorithms.b_matching.options import Options


def independent(options: Options, start: Sequence[int], go_on: Callable[[], bool]) -> tuple[list[int], bool]:
    """A selection no lighter than `start`, and whether it is proven to be the heaviest.

    Every port of every option must be single, and every weight positive. Goes on while `go_on()`.
    """
    order = sorted(range(len(options)), key=lambda j: -options.weights[j])
    weights = [options.weights[j] for j in order]
    conflicts = _conflicts(options, order)
    best, value = list(start), options.total(start)
    open_sets: list[tuple[int, float, tuple[int, ...]]] = [((1 << len(order)) - 1, 0.0, ())]
    while open_sets:
        if not go_on():
            return best, False
        candidates, weight, chosen = open_sets.pop()
        if weight > value:
            best, value = [order[place] for place in chosen], weight
        if _at_most(candidates, weights, conflicts, value - weight):
            continue
        heaviest = candidates & -candidates
        place = heaviest.bit_length() - 1
        open_sets.append((candidates ^ heaviest, weight, chosen))
        if _supplied(options, [order[taken] for taken in (*chosen, place)]):
            rest = candidates & ~(conflicts[place] | heaviest)
            open_sets.append((rest, weight + weights[place], (*chosen, place)))
    return best, True


def _conflicts(options: Options, order: Sequence[int]) -> list[int]:
    """For each place in `order` the places that it cannot go with, as bits."""
    at_vertex = [0] * len(options.budgets)
    for place, option in enumerate(order):
        for vertex in options.vertices[option]:
            at_vertex[vertex] |= 1 << place
    found = []
    for place, option in enumerate(order):
        mask = 0
        for vertex in options.vertices[option]:
            mask |= at_vertex[vertex]
        found.append(mask & ~(1 << place))
    return found


def _at_most(candidates: int, weights: Sequence[float], conflicts: Sequence[int], most: float) -> bool:
    """Whether a cover of the candidates by cliques shows that no independent set of them is heavier than `most`."""
    bound = 0.0
    while candidates:
        heaviest = candidates & -candidates
        place = heaviest.bit_length() - 1
        bound += weights[place]
        if bound > most:
            return False
        candidates ^= heaviest
        clique = candidates & conflicts[place]
        while clique:
            member = clique & -clique
            candidates ^= member
            clique &= conflicts[member.bit_length() - 1]
    return True


def _supplied(options: Options, chosen: Sequence[int]) -> bool:
    return all(
        sum(options.uses[option][size] for option in chosen) <= supply for size, supply in enumerate(options.supply)
    )
