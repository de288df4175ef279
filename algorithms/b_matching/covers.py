"""The sets of splitters from which a tree can be built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from algorithms.b_matching.feasibility import Feasibility, Pieces

MAX_COVERS = 64
"""Maximum number of splitter sets considered for one number of leaves; sets with the fewest splitters come first."""


def covers(leaves: int, feasibility: Feasibility) -> list[Pieces]:
    """Return the sets of splitters, none with a superfluous splitter, that suffice for a tree with `leaves` leaves."""
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
    """Yield the minimal sets from `pool` whose fan-outs less one add up to at least `need`.

    `pool` lists (fan-out, count), the largest fan-out first. No set has a superfluous splitter.
    """
    if need <= 0:
        yield taken
        return
    if not pool:
        return
    (fan_out, count), smaller = pool[0], pool[1:]
    for number in range(min(count, -(-need // (fan_out - 1))), -1, -1):
        yield from _minimal(need - number * (fan_out - 1), smaller, taken + (fan_out,) * number)
