"""The sets of splitters that a tree could be built of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from algorithms.b_matching.feasibility import Feasibility, Pieces

MAX_COVERS = 64
"""Sets of splitters considered for one number of leaves, those with the fewest splitters first."""


def covers(leaves: int, feasibility: Feasibility) -> list[Pieces]:
    """The sets of splitters, none with a splitter to spare, with which a tree of so many leaves can be built."""
    preferred = feasibility.splitters(leaves)
    pool = sorted(((fan_out, count) for fan_out, count in feasibility.pool.items() if count > 0), reverse=True)
    if not preferred or len(pool) == 1:
        return [] if preferred is None else [preferred]
    found = [tuple(sorted(preferred))]
    trial = feasibility.copy()
    for pieces in islice(_minimal(leaves - 1, pool), MAX_COVERS):
        trial.pool.clear()
        trial.pool.update(Counter(pieces))
        built = trial.splitters(leaves)
        if built is not None and tuple(sorted(built)) not in found:
            found.append(tuple(sorted(built)))
    return found


def _minimal(need: int, pool: Sequence[tuple[int, int]], taken: Pieces = ()) -> Iterator[Pieces]:
    """The sets from `pool` (ways and count, largest first) whose ways less one add up to `need`, none superfluous."""
    if need <= 0:
        yield taken
        return
    if not pool:
        return
    (fan_out, count), smaller = pool[0], pool[1:]
    for number in range(min(count, -(-need // (fan_out - 1))), -1, -1):
        yield from _minimal(need - number * (fan_out - 1), smaller, taken + (fan_out,) * number)
