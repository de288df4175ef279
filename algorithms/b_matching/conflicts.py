"""Exact search over wide groups that mostly exclude each other: a bit-parallel maximum-weight independent set.

If every rack has a single port, a selection is a set of options of which no two share a port. Wide groups on random
racks nearly all conflict, so such sets are small and the bound of the relaxation is weak (about 1.5 times the optimum).
A cover by cliques of the conflict graph bounds well: at most one option of each clique can be served. Sets are integers
with a bit for each option, heaviest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from algorithms.b_matching.options import Options


def independent(options: Options, start: Sequence[int], go_on: Callable[[], bool]) -> tuple[list[int], bool]:
    """Return a selection no lighter than `start`, and whether it is proven to be the heaviest.

    Every port of every option must be single, and every weight positive. Searches while `go_on()` is true.
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
        if _is_bounded_by(candidates, weights, conflicts, value - weight):
            continue
        heaviest = candidates & -candidates
        place = heaviest.bit_length() - 1
        open_sets.append((candidates ^ heaviest, weight, chosen))
        if _supplied(options, [order[taken] for taken in (*chosen, place)]):
            rest = candidates & ~(conflicts[place] | heaviest)
            open_sets.append((rest, weight + weights[place], (*chosen, place)))
    return best, True


def _conflicts(options: Options, order: Sequence[int]) -> list[int]:
    """Return, for each place in `order`, the places that conflict with it, as bits."""
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


def _is_bounded_by(candidates: int, weights: Sequence[float], conflicts: Sequence[int], limit: float) -> bool:
    """Return whether a clique cover proves that no independent set of the candidates is heavier than `limit`."""
    bound = 0.0
    while candidates:
        heaviest = candidates & -candidates
        place = heaviest.bit_length() - 1
        bound += weights[place]
        if bound > limit:
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
