"""The cheapest splitter tree for receivers that differ, as a small integer program over power levels.

Slots with equal power and equal depth are one level. Per level the program counts the splitters of each kind that hang
there and the receivers of each sort that are served there: no more than the splitters above opened. That is exact,
because slots within a level are alike. For receivers that are all alike, `cascade` answers the same question by a
lookup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from algorithms.power_budget import ROUNDING_DB, Passive, Piece, PowerLevel, Window

if TYPE_CHECKING:
    import highspy

DEEPEST = 8
"""Maximum number of splitters in series. Passive trees end earlier; behind amplifiers power alone sets no limit."""

Level = tuple[int, PowerLevel]
"""(splitters passed, power at the slots)"""


class LevelSolverError(RuntimeError):
    """A fault of this package: the solver failed on a program that is small and bounded."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A tree by levels: the number of splitters of each kind, and of receivers of each sort, at each level."""

    hung: Mapping[tuple[Level, Piece], int]
    served: Mapping[tuple[Level, Window], int]


@dataclass(frozen=True)
class LevelProgram:
    """The trees from one root for given numbers of receivers of each sort.

    Parameters
    ----------
    root : Light
        Power at the root slot in dBm.
    switch : Passive
        One pass through the switch, loss in dB.
    supply : mapping of Piece to int
        Kind to the number of free splitters.
    demands : mapping of Window to int
        Power range of a sort of receivers to their number.
    darkest : float, optional
        Power in dBm behind the switch below which slots are skipped if no amplifier could help them.
    """

    root: PowerLevel
    switch: Passive
    supply: Mapping[Piece, int]
    demands: Mapping[Window, int]
    darkest: float = -math.inf

    @cached_property
    def _below(self) -> dict[Level, dict[Piece, Level]]:
        """The reachable levels, and the level to which each kind leads from there; shallow ones first."""
        limit = min(DEEPEST, sum(self.supply.values()))
        found: dict[Level, dict[Piece, Level]] = {}
        waiting: list[Level] = [(0, self.root.rounded)]
        for level in waiting:
            if level in found:
                continue
            depth, light = level
            outputs = {kind: kind.hung(light, self.switch) for kind in self.supply} if depth < limit else {}
            found[level] = {
                kind: (depth + 1, output)
                for kind, output in outputs.items()
                if output is not None and not self._too_dark(output)
            }
            waiting += found[level].values()
        return found

    def _too_dark(self, slot: PowerLevel) -> bool:
        dark = self.switch.after(slot).worst < self.darkest - ROUNDING_DB
        return dark and not any(kind.amplifier for kind in self.supply)

    def _shortfall(self, level: Level, window: Window) -> float:
        """Return the dB that a receiver of this sort lacks at this level, at its worse bound."""
        light = level[1]
        overdriven = light.best > self.switch.max_input + ROUNDING_DB
        return math.inf if overdriven else round(-window.margin(self.switch.after(light)), 6)

    def shortfalls(self) -> list[float]:
        """Return the shortfalls in dB that can occur at any receiver, in ascending order."""
        found = {self._shortfall(level, window) for level in self._below for window in self.demands}
        return sorted(dB for dB in found if ROUNDING_DB < dB < math.inf)

    def solve(self, allowed: float = 0.0) -> Levels | None:
        """Return the cheapest tree in which no receiver falls short by more than a limit.

        Parameters
        ----------
        allowed : float, optional
            Maximum shortfall of a receiver in dB.

        Returns
        -------
        Levels or None
            None if there is no such tree.

        Raises
        ------
        LevelSolverError
            If the solver neither finds an optimum nor proves that there is no such tree.
        """
        places = [
            (level, window)
            for level in self._below
            for window in self.demands
            if self._shortfall(level, window) <= allowed + ROUNDING_DB
        ]
        useful = self._leading_to({level for level, _ in places})
        hangings = [
            (level, kind) for level, kinds in self._below.items() for kind, output in kinds.items() if output in useful
        ]
        if {window for _, window in places} != set(self.demands):
            return None
        counts = self._solved(hangings, places)
        if counts is None:
            return None
        hung = {hanging: n for hanging, n in zip(hangings, counts, strict=False) if n}
        served = {place: n for place, n in zip(places, counts[len(hangings) :], strict=True) if n}
        return Levels(hung, served)

    def _leading_to(self, levels: set[Level]) -> set[Level]:
        useful = set(levels)
        for level, kinds in sorted(self._below.items(), key=lambda item: -item[0][0]):
            if not useful.isdisjoint(kinds.values()):
                useful.add(level)
        return useful

    def _solved(
        self, hangings: Sequence[tuple[Level, Piece]], places: Sequence[tuple[Level, Window]]
    ) -> list[int] | None:
        # Imported here, because it loads numpy, a tenth of a controller's memory, and few fabrics need it.
        import highspy

        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", 1e-6)
        uses: dict[Level, list[tuple[int, float]]] = {level: [] for level in self._below}
        of_kind: dict[Piece, list[int]] = {kind: [] for kind in self.supply}
        of_sort: dict[Window, list[int]] = {window: [] for window in self.demands}
        for column, (level, kind) in enumerate(hangings):
            # Among trees of equal price take the one with the fewest pieces, so that no splitter hangs without a
            # receiver.
            solver.addCol(kind.price + 1e-3, 0.0, float(self.supply[kind]), 0, [], [])
            uses[level].append((column, 1.0))
            uses[self._below[level][kind]].append((column, -float(kind.fan_out)))
            of_kind[kind].append(column)
        for column, (level, window) in enumerate(places, start=len(hangings)):
            solver.addCol(0.0, 0.0, float(self.demands[window]), 0, [], [])
            uses[level].append((column, 1.0))
            of_sort[window].append(column)
        columns = len(hangings) + len(places)
        for column in range(columns):
            solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        root = next(iter(self._below))
        for level, terms in uses.items():
            _row(solver, -highspy.kHighsInf, float(level == root), terms)
        for kind, using in of_kind.items():
            _row(solver, 0.0, float(self.supply[kind]), [(column, 1.0) for column in using])
        for window, serving in of_sort.items():
            _row(solver, float(self.demands[window]), float(self.demands[window]), [(c, 1.0) for c in serving])
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise LevelSolverError(f"the solver ended with {solver.modelStatusToString(status)}")
        return [round(value) for value in solver.getSolution().col_value]


def _row(solver: highspy.Highs, lower: float, upper: float, terms: Sequence[tuple[int, float]]) -> None:
    solver.addRow(lower, upper, len(terms), [column for column, _ in terms], [factor for _, factor in terms])
