"""The result of an optimizer: the selection, its splitters, and its maximum distance from the optimum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.grid import WeightGrid
from algorithms.b_matching.group import CompetingGroup

Selection = list[tuple[CompetingGroup, Pieces]]
"""Groups to serve, each with the splitters of its tree."""


@dataclass(frozen=True, slots=True)
class OptimizedSelection:
    """A selection, its weight, and an upper bound on the weight of any selection.

    Parameters
    ----------
    selection : list of (Group, splitters)
        The groups to serve.
    value : float
        Total weight of the selection.
    bound : float or None
        The upper bound, in the unit of the weights; None: none was proven.
    """

    selection: Selection
    value: float
    bound: float | None

    @property
    def gap(self) -> float | None:
        """The share of the bound by which an optimum could be better; None without a bound."""
        if self.bound is None:
            return None
        return max(0.0, self.bound - self.value) / self.bound if self.bound > 0 else 0.0

    @property
    def certified(self) -> bool:
        """True if the selection is proven optimal, without a tolerance."""
        return self.bound is not None and self.bound <= self.value


def bounded(selection: Selection, grid: WeightGrid, units: float) -> OptimizedSelection:
    """Return a selection with a bound, which is exactly its own weight if that is proven.

    Parameters
    ----------
    selection : list of (Group, splitters)
        The groups to serve.
    grid : Grid
        The unit of the bound.
    units : float
        The bound, a whole number of units.

    Returns
    -------
    Optimized
        Certified only if the selection weighs no less than the bound, in whole units.

    Examples
    --------
    >>> from algorithms.b_matching.grid import grid_of
    >>> grid = grid_of([10_000_000.0, 10_000_001.0], 2)
    >>> rival = CompetingGroup("rival", 1, 1, 1, 10_000_000.0)
    >>> bounded([(rival, ())], grid, 10_000_001.0 * grid.scale / grid.divisor).certified
    False
    """
    value = total(selection)
    if grid.round_down(group.weight for group, _ in selection) >= units:
        return OptimizedSelection(selection, value, value)
    return OptimizedSelection(selection, value, max(grid.weight(units), math.nextafter(value, math.inf)))


def total(selection: Iterable[tuple[CompetingGroup, Pieces]]) -> float:
    """Return the total weight of the selection.

    Parameters
    ----------
    selection : iterable of (Group, splitters)
        As returned by `greedy`, `optimizer` and `exact`.

    Returns
    -------
    float
        In the unit of the weights. O(n).

    Examples
    --------
    >>> total([(CompetingGroup("a", 3, 2, 1, 100.0), ()), (CompetingGroup("b", 12, 2, 1, 50.0), ())])
    150.0
    """
    return sum(group.weight for group, _ in selection)


def fill(selection: Selection, candidates: Iterable[CompetingGroup], feasibility: Feasibility) -> Selection:
    """Extend `selection` by the `candidates` that still fit, in their order.

    Parameters
    ----------
    selection : list of (Group, splitters)
        Groups that are served in any case; they must fit.
    candidates : iterable of Group
        In order of precedence; groups that are already served are skipped.
    feasibility : Feasibility
        Free resources before `selection` is served. Not modified.

    Returns
    -------
    list of (Group, splitters)
        A new list.

    Notes
    -----
    O(racks / 64) for each candidate that lacks a port, plus a choice of splitters for each other candidate.

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup, shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> groups.append(CompetingGroup("other", shared_ports(1, [2]), 2, 1, 50.0))
    >>> [group.name for group, splitters in fill([(groups[1], ())], groups, free)]
    ['pair', 'other']
    """
    left = feasibility.copy()
    for group, pieces in selection:
        left.take(group, pieces)
    served = {group.name for group, _ in selection}
    filled = list(selection)
    for group in candidates:
        if left.full & group.ports or group.name in served:
            continue
        pieces_now = left.fit(group)
        if pieces_now is not None:
            left.take(group, pieces_now)
            filled.append((group, pieces_now))
    return filled
