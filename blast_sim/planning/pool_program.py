"""Which pool of splitters to buy, as a linear program over several samples of a workload.

One variable for each option (a request of a sample with a set of splitters), and one for the number of splitters of
each size, which all samples share. Maximize the mean share of the volume that is served, less the price of the
splitters times an exchange rate. Every rate gives the pool that is best value at that rate, so that a row of rates
gives a row of pools, from none at all to all that are of use (the upper hull of served volume against price).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from algorithms.b_matching.options import Options

ROUNDING = 1e-6
"""Distance from a whole number that is the solver's tolerance."""


class PoolSolverError(RuntimeError):
    """The solver found no optimum of a program that has one, which is its fault."""


@dataclass(frozen=True, slots=True)
class SplitterSize:
    """A size of splitter on offer: its `price` with the switch ports that it takes, and how many those are."""

    fan_out: int
    price: float
    switch_ports: int


class PoolProgram:
    """The program in the solver; the rate can be changed between solutions, which then cost a few pivots."""

    def __init__(self, samples: Sequence[Options], sizes: Sequence[SplitterSize], max_ports: int) -> None:
        """Build the program; `samples` use all `sizes` and no others, and splitters take at most `max_ports` ports."""
        self._sizes, self._max_ports = sizes, max_ports
        rows = _Rows()
        for sample in samples:
            _add_sample(rows, sample, [size.fan_out for size in sizes], len(samples))
        self._bought = [rows.column(0.0, math.inf) for _ in sizes]
        for place, column in enumerate(self._bought):
            # Each sample has a row of its own for each size: its use, less the number bought.
            for row in rows.shared[sizes[place].fan_out]:
                rows.put(row, column, -1.0)
        ports = rows.row(max(0.0, max_ports))
        for size, column in zip(sizes, self._bought, strict=True):
            rows.put(ports, column, size.switch_ports)
        self._solver = rows.solver()

    def solve(self, rate: float) -> dict[int, int]:
        """Return the best splitters by fan-out if a price unit is worth `rate` of volume. Raises PoolSolverError."""
        if not self._sizes:
            return {}
        for size, column in zip(self._sizes, self._bought, strict=True):
            self._solver.changeColCost(column, -rate * size.price)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise PoolSolverError(f"the solver ended with {self._solver.modelStatusToString(status)}")
        values = self._solver.getSolution().col_value
        return _whole(
            {size: values[column] for size, column in zip(self._sizes, self._bought, strict=True)}, self._max_ports
        )


def _whole(amounts: Mapping[SplitterSize, float], max_ports: int) -> dict[int, int]:
    """Round up; where the switch has no ports for that, undo the largest roundings first."""
    counts = {size: math.ceil(amount - ROUNDING) for size, amount in amounts.items()}
    for size in sorted(counts, key=lambda size: amounts[size] - counts[size]):
        if sum(count * each.switch_ports for each, count in counts.items()) > max_ports:
            counts[size] = math.floor(amounts[size] + ROUNDING)
    return {size.fan_out: count for size, count in counts.items()}


@dataclass(slots=True)
class _Rows:
    """A program under construction, row by row; `shared` are the rows of each size of splitter."""

    costs: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    entries: list[list[tuple[int, float]]] = field(default_factory=list)
    shared: Mapping[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def column(self, cost: float, upper: float) -> int:
        self.costs.append(cost)
        self.upper.append(upper)
        return len(self.costs) - 1

    def row(self, limit: float) -> int:
        self.limits.append(limit)
        self.entries.append([])
        return len(self.limits) - 1

    def put(self, row: int, column: int, factor: float) -> None:
        self.entries[row].append((column, factor))

    def solver(self) -> highspy.Highs:
        starts = np.cumsum([0, *(len(entries) for entries in self.entries)])
        flat = [entry for entries in self.entries for entry in entries]
        columns, rows = len(self.costs), len(self.limits)
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.passModel(
            columns,
            rows,
            len(flat),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMaximize),
            0.0,
            np.array(self.costs, np.float64),
            np.zeros(columns),
            np.array(self.upper, np.float64),
            np.full(rows, -np.inf),
            np.array(self.limits, np.float64),
            starts.astype(np.int32),
            np.array([column for column, _ in flat], np.int32),
            np.array([factor for _, factor in flat], np.float64),
            np.zeros(columns, np.int32),
        )
        return solver


def _add_sample(rows: _Rows, sample: Options, sizes: Sequence[int], samples: int) -> None:
    volume = sum(group.weight for group in sample.groups) * samples
    at_vertex = [rows.row(budget) for budget in sample.budgets]
    of_size = {fan_out: rows.row(0.0) for fan_out in sizes}
    for fan_out, row in of_size.items():
        rows.shared[fan_out].append(row)
    of_group: dict[int, int] = {}
    for option, owner in enumerate(sample.owners):
        column = rows.column(sample.weights[option] / volume, 1.0)
        if owner not in of_group:
            of_group[owner] = rows.row(1.0)
        rows.put(of_group[owner], column, 1.0)
        for vertex in sample.vertices[option]:
            rows.put(at_vertex[vertex], column, 1.0)
        for fan_out, used in zip(sample.sizes, sample.uses[option], strict=True):
            if used:
                rows.put(of_size[fan_out], column, used)
