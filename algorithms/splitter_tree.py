"""Trees of passive splitters: how many a group needs, which ones to take, and how to hang them.

Counting rule: one fibre is one open leaf; hanging a 1:N splitter on an open leaf turns it into N, so each splitter
adds N - 1. A group of r racks (sender's included) needs r - 1 leaves, hence the paper's constraints (Blast,
section III-C): m = ceil((r - 2) / (N - 1)) splitters, and r <= k(N + 1) - 2(k - 1) with at most k of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Leg = tuple[int, int]
"""(index of a splitter in the tree, number of its leg from 0)"""


def splitters_needed(racks: int, ways: int) -> int:
    """The paper's m_i: the least number of 1:`ways` splitters for a group of `racks` racks, sender's included."""
    return max(0, -((2 - racks) // (ways - 1)))


def largest_group(ways: int, splitters: int) -> int:
    """The paper's constraint 1: the most racks, sender's included, that `splitters` 1:`ways` splitters can join."""
    return splitters * (ways + 1) - 2 * (splitters - 1)


def most_leaves(pool: Mapping[int, int], most_splitters: int | None) -> int:
    """The most leaves that one tree from `pool` (ways to count) can have."""
    sizes = sorted((ways for ways, count in pool.items() for _ in range(count)), reverse=True)
    return 1 + sum(ways - 1 for ways in sizes[:most_splitters])


def choose_splitters(
    leaves: int, pool: Mapping[int, int], most_splitters: int | None = None, open_legs: int = 1
) -> tuple[int, ...] | None:
    """Sizes of the splitters to hang so that `open_legs` open legs become at least `leaves`, or None if impossible.

    Takes the smallest size that covers the need at once, else the largest left; with one size this is the paper's
    m. `pool` maps ways to the number available; at most `most_splitters` are taken (None: no limit).
    """
    need = leaves - open_legs
    if need > 0 and open_legs == 0:
        return None
    left = sorted([ways for ways, count in pool.items() if count > 0])
    chosen: list[int] = []
    while need > 0:
        if not left:
            return None
        largest = left[-1]
        if largest > need:
            chosen.append(left[bisect_right(left, need)])
            break
        # As many of the largest as it takes until one splitter covers the rest, at once: this is asked very often.
        taken = min(pool[largest], (need - 1) // (largest - 1))
        chosen += [largest] * taken
        need -= taken * (largest - 1)
        if taken == pool[largest]:
            left.pop()
    return None if most_splitters is not None and len(chosen) > most_splitters else tuple(chosen)


@dataclass(frozen=True, slots=True)
class Shape:
    """A splitter tree without names.

    `feeds[i]` is the leg that feeds splitter i (None: the root fibre), `leaves` the legs that serve the leaves
    (None: the root fibre itself, a plain cross-connect). Splitters come parents first, leaves shallowest first.
    """

    ways: tuple[int, ...]
    feeds: tuple[Leg | None, ...]
    leaves: tuple[Leg | None, ...]

    def depth(self, leg: Leg | None) -> int:
        """How many splitters the light to this leg has passed."""
        return 0 if leg is None else 1 + self.depth(self.feeds[leg[0]])


def shallowest(leaves: int, ways: Sequence[int]) -> Shape:
    """The tree of least depth: the largest splitters on top, each on the shallowest open leg, then the leaves.

    All splitters are hung; the depth is the least possible where none of them is superfluous.
    Raises ValueError when the splitters do not offer `leaves` legs.
    """
    sizes = sorted(ways, reverse=True)
    open_legs: deque[Leg | None] = deque([None])
    feeds: list[Leg | None] = []
    for index, size in enumerate(sizes):
        feeds.append(open_legs.popleft())
        open_legs.extend((index, leg) for leg in range(size))
    if len(open_legs) < leaves:
        raise ValueError(f"{len(open_legs)} legs cannot serve {leaves} leaves")
    return Shape(tuple(sizes), tuple(feeds), tuple(list(open_legs)[:leaves]))
