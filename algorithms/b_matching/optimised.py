"""The answer of an optimiser: who is served, with which splitters, and how far that can be from the best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import Group

Selection = list[tuple[Group, Pieces]]
"""Groups to serve, each with the splitters of its tree."""

TOLERANCE = 1e-6
"""Share of the value below which a gap is the solver's rounding and nothing else."""


@dataclass(frozen=True, slots=True)
class Optimised:
    """A selection, its weight, and an upper bound on the weight of any (None: not everything was considered)."""

    selection: Selection
    value: float
    bound: float | None

    @property
    def gap(self) -> float | None:
        """Share of the bound that an optimum could be better; None without a bound."""
        if self.bound is None:
            return None
        return max(0.0, self.bound - self.value) / self.bound if self.bound > 0 else 0.0

    @property
    def certified(self) -> bool:
        """Whether the selection is proven to be an optimum."""
        return self.gap is not None and self.gap <= TOLERANCE


def total(selection: Iterable[tuple[Group, Pieces]]) -> float:
    """The weight of what is served."""
    return sum(group.weight for group, _ in selection)


def fill(selection: Selection, candidates: Iterable[Group], feasibility: Feasibility) -> Selection:
    """`selection`, and behind it those `candidates` that still fit, in their order. `feasibility` stays as it is."""
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
