"""A contention: parts that could start now, but not all together.

Plain data, so that another process or a simulator's step can solve it while everything else goes on: see `choosing`.
The answer is a preference, not a permission: the scheduler still checks that resources are free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from algorithms.b_matching.covers import covers
from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup, members
from algorithms.scheduling.job import PartName


@dataclass(frozen=True, slots=True)
class Contender:
    """A part that could start on a switch now; `group.weight` is the policy's objective."""

    name: PartName
    switch: str
    group: CompetingGroup


@dataclass(frozen=True, slots=True)
class Chosen:
    """A part to serve before others.

    Parameters
    ----------
    name : PartName
        Name of the part.
    switch : str
        The optical switch to serve it on.
    pieces : Pieces
        Fan-outs of the splitters to use.
    """

    name: PartName
    switch: str
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Contention:
    """Contenders, and the free resources for them.

    Parameters
    ----------
    contenders : tuple of Contender
        Best rank first; a part occurs once for each switch on which it could start.
    free : mapping of str to Feasibility
        Switch to its free resources.
    left : mapping of str to float
        Limited tenants to the number of splitters that they may still take; -1: no optical path at all.
    """

    contenders: tuple[Contender, ...]
    free: Mapping[str, Feasibility]
    left: Mapping[str, float]

    def is_like(self, other: Contention) -> bool:
        """Return whether another contention differs in nothing but the weights.

        Parameters
        ----------
        other : Contention
            The contention to compare with.

        Returns
        -------
        bool
            True if it has the same parts, switches and ports, and equal free resources and allowances of tenants.
        """
        return self.left == other.left and self._asked() == other._asked() and self._supply() == other._supply()

    def _asked(self) -> list[tuple[str, object, int]]:
        return [(c.switch, c.name, c.group.ports) for c in self.contenders]

    def _supply(self) -> list[tuple[str, dict[int, int], list[int]]]:
        ports = dict.fromkeys(self.free, 0)
        for contender in self.contenders:
            ports[contender.switch] |= contender.group.ports
        return [
            (name, dict(free.pool), [free.left(vertex) for vertex in members(ports[name])])
            for name, free in self.free.items()
        ]

    def is_settled(self) -> bool:
        """Return whether all contenders can be served together.

        Returns
        -------
        bool
            True if there is no choice to make.
        """
        served = self.served((contender, None) for contender in self.contenders)
        return len(served) == len({contender.name for contender in self.contenders})

    def served(self, order: Iterable[tuple[Contender, Pieces | None]]) -> list[tuple[Contender, Pieces]]:
        """Return the contenders that are served in a given order.

        Parameters
        ----------
        order : iterable of (Contender, splitters or None)
            Contenders to serve as far as tenants' allowances permit: with these fan-outs, whose ports and splitters
            must be free, or, for None, with the choice of the switch if they fit.

        Returns
        -------
        list of (Contender, splitters)
            Each part at most once, in that order.
        """
        free = {name: switch.copy() for name, switch in self.free.items()}
        left = dict(self.left)
        served: dict[object, tuple[Contender, Pieces]] = {}
        for contender, preferred in order:
            group, switch = contender.group, free[contender.switch]
            if contender.name in served:
                continue
            pieces = switch.fit(group) if preferred is None else preferred
            if pieces is None or len(pieces) > left.get(group.tenant, math.inf):
                continue
            switch.take(group, pieces)
            if group.tenant in left:
                left[group.tenant] -= len(pieces)
            served[contender.name] = contender, pieces
        return list(served.values())


class KnownTrees:
    """A rule that chooses among sets of splitters found before: a `Choose` that is plain data."""

    def __init__(self, leaves: Iterable[int], free: Feasibility) -> None:
        self._sets: dict[int, Sequence[Pieces]] = {count: covers(count, free) for count in leaves if count > 1}

    def __call__(self, leaves: int, pool: Mapping[int, int]) -> Pieces | None:
        """Return the first set that is free, or None."""
        return next((pieces for pieces in self._sets.get(leaves, ()) if are_free(pieces, pool)), None)


def are_free(pieces: Pieces, pool: Mapping[int, int]) -> bool:
    """Return whether the pool has all of these at once."""
    return all(pool.get(fan_out, 0) >= pieces.count(fan_out) for fan_out in set(pieces))
