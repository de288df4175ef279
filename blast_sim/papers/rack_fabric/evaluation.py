"""Simulation of panels: each run is computed once, even if several panels use it, and stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from blast_sim.base.report import Row
from blast_sim.base.sweep import Failure, Kept, Workers
from blast_sim.fabric.cell import FabricCell
from blast_sim.fabric.running import simulated
from blast_sim.fabric.scenario import Model
from blast_sim.fabric.simulator import Simulator
from blast_sim.papers.rack_fabric import caching, congestion, header_drops, voq_drops, whole_system, without_curves
from blast_sim.papers.rack_fabric.panel import Lines, Panel

PANELS: Sequence[Panel] = (
    *caching.PANELS,
    *header_drops.PANELS,
    *voq_drops.PANELS,
    *congestion.PANELS,
    *whole_system.PANELS,
)
"""The curves of the paper, all 22 of them."""

EXPERIMENTS: Sequence[Panel] = (
    *header_drops.EXPERIMENTS,
    *voq_drops.EXPERIMENTS,
    *whole_system.EXPERIMENTS,
    *without_curves.EXPERIMENTS,
)
"""Statements of the paper without a curve, and experiments that explain differences."""

Curves = Mapping[str, Lines]
"""The lines of each panel, by its name."""


class NoRunResultError(Exception):
    """A run has no result. One sentence."""


def evaluated(simulator: Simulator, panels: Sequence[Panel], seed: int, workers: Workers, kept: Kept) -> Curves:
    """Simulate these panels; return their lines. Raises InputError, NoRunResultError, RunFailedError, OSError."""
    plan = {panel.name: panel.cases(seed) for panel in panels}
    results = results_of(simulator, [case.model for cases in plan.values() for case in cases], workers, kept)
    left = iter(results)
    return {
        panel.name: panel.lines(cases, [next(left) for _ in cases])
        for panel, cases in zip(panels, plan.values(), strict=True)
    }


def results_of(simulator: Simulator, models: Iterable[Model], workers: Workers, kept: Kept) -> list[Row]:
    """Return the result of each model, in order. Raises InputError, NoRunResultError, RunFailedError, OSError."""
    version = simulator.version()
    cells: dict[str, FabricCell] = {}
    keys: list[str] = []
    for model in models:
        cell = FabricCell(model["name"], model, 0, 0, version)
        keys.append(cell.key)
        if cell.key not in cells:
            taken = simulator.check(model)
            cells[cell.key] = FabricCell(model["name"], model, taken.events, taken.memory_bytes, version)
    found = dict(zip(cells, simulated(simulator, list(cells.values()), kept, workers), strict=True))
    return [_result(cells[key], found[key]) for key in keys]


def _result(cell: FabricCell, result: list[Row] | Failure) -> Row:
    if isinstance(result, Failure):
        raise NoRunResultError(f"{cell.title} has no result: {result.reason}")
    if len(result) != 1 or not {"flows", "series", "counters"} <= set(result[0]):
        raise NoRunResultError(f"the stored data of {cell.title} is not a result: simulate it with --again")
    return result[0]
