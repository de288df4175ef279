"""Max-min fair rates without any solver: the bottleneck property, and a sequence of linear programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import strategies as st

from blast_sim.fair import Paths, Solver

SOLVERS: tuple[Solver, ...] = ("numba", "numpy") if find_spec("numba") else ("numpy",)
"""The solvers that are installed."""
EACH_SOLVER = (pytest.param("numba", marks=pytest.mark.numba), pytest.param("numpy"))

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class FairProblem:
    """Flows on links, each entry `multiplicity` times."""

    capacities: Sequence[float]
    paths: Sequence[Sequence[int]]
    multiplicity: Sequence[float]
    weights: Sequence[float]
    caps: Sequence[float]

    @property
    def demands(self) -> dict[str, Any]:
        """Return the demands in the format of the solvers."""
        return {"multiplicity": self.multiplicity, "weights": self.weights, "rate_caps": self.caps}

    @property
    def csr(self) -> Paths:
        """Return the paths as one array."""
        return Paths.of(self.paths)


def fair_problems(flows: int, links: int, longest: int) -> st.SearchStrategy[FairProblem]:
    """Draw problems up to this size, with dead links, equal capacities, caps and paths without links."""

    @st.composite
    def problems(draw: st.DrawFn) -> FairProblem:
        count = draw(st.integers(1, links))
        total = draw(st.integers(1, flows))
        capacities = st.one_of(st.sampled_from([0.0, 1.0, 10.0]), st.floats(0.1, 100.0))
        path = st.lists(st.integers(0, count - 1), max_size=min(longest, 2 * count))
        several = {"min_size": total, "max_size": total}
        paths = draw(st.lists(path, **several))
        caps = draw(st.lists(st.one_of(st.sampled_from([np.inf, 0.0]), st.floats(1e-6, 20.0)), **several))
        return FairProblem(
            draw(st.lists(capacities, min_size=count, max_size=count)),
            paths,
            draw(st.lists(st.integers(1, 4), **several)),
            draw(st.lists(st.sampled_from([0.25, 1.0, 1.0, 3.0]), **several)),
            # Nothing would bound a flow without links and cap.
            [cap if path else min(cap, 7.0) for path, cap in zip(paths, caps, strict=True)],
        )

    return problems()


def check_bottlenecks(problem: FairProblem, rates: Numbers) -> None:
    """Check that rates are max-min fair: they fit, and every flow is at its cap or has a bottleneck.

    A bottleneck is a saturated link at which no flow has more rate for its weight.
    """
    capacities = np.array(problem.capacities)
    on_links = np.zeros(len(capacities))
    for path, rate, multiplicity in zip(problem.paths, rates, problem.multiplicity, strict=True):
        for link in path:
            on_links[link] += rate * multiplicity
    scale = 1e-9 * max(1.0, capacities.max())
    assert (rates >= 0).all()
    assert (on_links <= capacities + scale).all()
    levels = rates / np.array(problem.weights)
    maximum = np.zeros(len(capacities))
    for path, level in zip(problem.paths, levels, strict=True):
        for link in path:
            maximum[link] = max(maximum[link], level)
    for path, rate, level, cap in zip(problem.paths, rates, levels, problem.caps, strict=True):
        assert rate <= cap * (1 + 1e-12)
        has_bottleneck = any(
            on_links[link] >= capacities[link] - scale and level >= maximum[link] - scale for link in path
        )
        assert has_bottleneck or rate >= cap * (1 - 1e-12)


def lexicographic(problem: FairProblem) -> Numbers:
    """Return the same rates by linear programs: raise the lowest level, hold the flows that it limits, repeat."""
    total = len(problem.paths)
    held: dict[int, float] = {}
    while len(held) < total:
        level = _maximum(problem, held, "common")
        rest = [flow for flow in range(total) if flow not in held]
        stuck = [flow for flow in rest if _maximum(problem, held, f"level{flow}", level) < level + 1e-4]
        assert stuck
        held.update((flow, level) for flow in stuck)
    return np.array([held[flow] * problem.weights[flow] for flow in range(total)])


def _maximum(problem: FairProblem, held: dict[int, float], objective: str, min_common: float = 0.0) -> float:
    """Return the maximum of a variable: the level of a flow, or the common one of flows that are not fixed."""
    # Values of earlier programs are rounded, and several such may need more than there is: hence the slack.
    slack = 1e-6
    program = pulp.LpProblem("levels", pulp.LpMaximize)
    common = program.add_variable("common", max(0.0, min_common - slack))
    levels = []
    for flow, (cap, weight) in enumerate(zip(problem.caps, problem.weights, strict=True)):
        limit = min(held.get(flow, np.inf), cap / weight)
        minimum = max(0.0, held[flow] - slack) if flow in held else 0.0
        levels.append(program.add_variable(f"level{flow}", minimum, None if limit == np.inf else limit))
        if flow not in held:
            program += levels[flow] >= common
    for link, capacity in enumerate(problem.capacities):
        on_link = [
            path.count(link) * multiplicity * weight * level
            for path, multiplicity, weight, level in zip(
                problem.paths, problem.multiplicity, problem.weights, levels, strict=True
            )
            if link in path
        ]
        if on_link:
            program += pulp.lpSum(on_link) <= capacity + slack
    program.setObjective(next(one for one in (common, *levels) if one.name == objective))
    program.solve(pulp.HiGHS(msg=False))
    assert pulp.LpStatus[program.status] == "Optimal"
    return float(pulp.value(program.objective))
