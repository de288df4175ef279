"""A feasible selection of options that changes by one option at a time: the state of the local searches."""

from __future__ import annotations

import random
from collections.abc import Sequence

from algorithms.b_matching.options import Options

TRIES = 8
"""Random draws for a holder of a scarce splitter size before the move is abandoned."""


class OptionPacking:
    """The selected options, within the budgets and the supply.

    `selected` are the options, in no order; `value` is their total weight; `full` are the vertices without a free port,
    as bits.
    """

    __slots__ = (
        "_chosen",
        "_free",
        "_holders",
        "_options",
        "_place",
        "_ports",
        "_scarce",
        "_scores",
        "_weights",
        "full",
        "selected",
        "value",
    )

    def __init__(self, options: Options, scores: Sequence[float]) -> None:
        """Start empty. `scores[j]` is the cost of removing option j in `evictions`."""
        self._options = options
        self._scores = scores
        self._weights = options.weights
        self._ports = options.ports
        self._chosen = [-1] * len(options.groups)
        self._holders: list[list[int]] = [[] for _ in options.budgets]
        self.full = 0
        self._free = list(options.supply)
        scarce = {uses: [(s, used) for s, used in enumerate(uses) if used] for uses in set(options.uses)}
        self._scarce = [scarce[uses] for uses in options.uses]
        self._place = [-1] * len(options)
        self.selected: list[int] = []
        self.value = 0.0

    def fits(self, option: int) -> bool:
        """Return whether the option can be added now."""
        return (
            not self.full & self._ports[option]
            and self._chosen[self._options.owners[option]] < 0
            and all(used <= self._free[s] for s, used in self._scarce[option])
        )

    def holds(self, option: int) -> bool:
        """Return whether the option is selected."""
        return self._place[option] >= 0

    def evictions(self, option: int, max_loss: float, rng: random.Random) -> list[int] | None:
        """Return the options to remove so that `option` fits, or None if their scores add up to more than `max_loss`.

        If one of several options must be removed, chance picks it.
        """
        removed: list[int] = []
        lost = 0.0
        scores, ports, holders = self._scores, self._ports, self._holders
        other = self._chosen[self._options.owners[option]]
        blocked = self.full & ports[option]
        if other >= 0:
            removed.append(other)
            lost = scores[other]
            blocked = 0
        while blocked:
            occupants = holders[(blocked & -blocked).bit_length() - 1]
            holder = occupants[0] if len(occupants) == 1 else occupants[int(rng.random() * len(occupants))]
            lost += scores[holder]
            if lost > max_loss:
                return None
            removed.append(holder)
            blocked &= ~ports[holder]
        for size, used in self._scarce[option]:
            if not self._make_room(size, used, removed, rng):
                return None
        return removed if sum(scores[holder] for holder in removed) <= max_loss else None

    def _make_room(self, size: int, needed: int, removed: list[int], rng: random.Random) -> bool:
        """Extend `removed` until `needed` splitters of `size` are free; return False if the draws find no holders."""
        uses = self._options.uses
        free = self._free[size]
        if free >= needed:
            return True
        for holder in removed:
            free += uses[holder][size]
        tries = TRIES
        while free < needed:
            if not tries or not self.selected:
                return False
            holder = self.selected[int(rng.random() * len(self.selected))]
            if uses[holder][size] and holder not in removed:
                removed.append(holder)
                free += uses[holder][size]
            else:
                tries -= 1
        return True

    def add(self, option: int) -> None:
        """Select an option that fits."""
        options = self._options
        self._place[option] = len(self.selected)
        self.selected.append(option)
        self.value += self._weights[option]
        self._chosen[options.owners[option]] = option
        for vertex in options.vertices[option]:
            occupants = self._holders[vertex]
            occupants.append(option)
            if len(occupants) == options.budgets[vertex]:
                self.full |= 1 << vertex
        for size, used in self._scarce[option]:
            self._free[size] -= used

    def remove(self, option: int) -> None:
        """Undo `add`."""
        options = self._options
        place, last = self._place[option], self.selected.pop()
        if last != option:
            self.selected[place] = last
            self._place[last] = place
        self._place[option] = -1
        self.value -= self._weights[option]
        self._chosen[options.owners[option]] = -1
        for vertex in options.vertices[option]:
            self._holders[vertex].remove(option)
        self.full &= ~self._ports[option]
        for size, used in self._scarce[option]:
            self._free[size] += used
