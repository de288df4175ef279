"""A decision in which not all who could start can, and what may be said about it.

Plain data, so that it can be thought about elsewhere (another process, a simulator's step) while everything else goes
on: see `choosing`. The answer is a preference and never a permission: who gives out light looks again what is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from algorithms.b_matching.covers import covers
from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import Group, members
from algorithms.scheduling.job import PartName


@dataclass(frozen=True, slots=True)
class Contender:
    """A part that could start on a switch now; `group.weight` is the policy's objective."""

    name: PartName
    switch: str
    group: Group


@dataclass(frozen=True, slots=True)
class Chosen:
    """A part to serve before others, on this switch and with these splitters."""

    name: PartName
    switch: str
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Contention:
    """Contenders, best rank first (one on several switches is there once for each), and what is free for them.

    `left` says how many splitters a limited tenant may still take.
    """

    contenders: tuple[Contender, ...]
    free: Mapping[str, Feasibility]
    left: Mapping[str, float]

    def is_like(self, other: Contention) -> bool:
        """Whether it asks the same: the same parts for the same ports, and as much free for them."""
        return self.left == other.left and self._asked() == other._asked() and self._supply() == other._supply()

    def _asked(self) -> list[tuple[str, object, int]]:
        return [(c.switch, c.name, c.group.ports) for c in self.contenders]

    def _supply(self) -> list[tuple[str, dict[int, int], list[int]]]:
        wanted = dict.fromkeys(self.free, 0)
        for contender in self.contenders:
            wanted[contender.switch] |= contender.group.ports
        return [
            (name, dict(free.pool), [free.left(vertex) for vertex in members(wanted[name])])
            for name, free in self.free.items()
        ]

    def is_settled(self) -> bool:
        """Whether all of them can be served together, so that there is nothing to choose."""
        served = self.served((contender, None) for contender in self.contenders)
        return len(served) == len({contender.name for contender in self.contenders})

    def served(self, order: Iterable[tuple[Contender, Pieces | None]]) -> list[tuple[Contender, Pieces]]:
        """Who is served in this order, with the splitters named or else those that the switch would choose."""
        free = {name: switch.copy() for name, switch in self.free.items()}
        left = dict(self.left)
        served: dict[object, tuple[Contender, Pieces]] = {}
        for contender, wanted in order:
            group, switch = contender.group, free[contender.switch]
            if contender.name in served:
                continue
            pieces = switch.fit(group) if wanted is None else wanted
            if pieces is None or len(pieces) > left.get(group.tenant, math.inf):
                continue
            switch.take(group, pieces)
            if group.tenant in left:
                left[group.tenant] -= len(pieces)
            served[contender.name] = contender, pieces
        return list(served.values())


class KnownTrees:
    """Chooses among sets of splitters found before: a `Choose` that is plain data."""

    def __init__(self, leaves: Iterable[int], free: Feasibility) -> None:
        self._sets: dict[int, Sequence[Pieces]] = {count: covers(count, free) for count in leaves if count > 1}

    def __call__(self, leaves: int, pool: Mapping[int, int]) -> Pieces | None:
        """The first set that is free, or None."""
        return next((pieces for pieces in self._sets.get(leaves, ()) if are_free(pieces, pool)), None)


def are_free(pieces: Pieces, pool: Mapping[int, int]) -> bool:
    """Whether the pool has all of these at once."""
    return all(pool.get(fan_out, 0) >= pieces.count(fan_out) for fan_out in set(pieces))
