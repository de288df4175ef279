"""Cells that are simulated here, as many at once as there are processors and room in memory for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from blast_sim.base.files import whole_or_not
from blast_sim.base.report import Row
from blast_sim.base.software import OtherSoftwareError
from blast_sim.base.sweep import Kept, Result, Workers, run_cells
from blast_sim.fabric.at_once import at_once
from blast_sim.fabric.cell import FabricCell
from blast_sim.fabric.memory import available_bytes, runs_at_once
from blast_sim.fabric.progress import Bar
from blast_sim.fabric.simulator import Simulator, program


def simulated(
    simulator: Simulator, cells: Sequence[FabricCell], kept: Kept, workers: Workers, trace: Path | None = None
) -> list[Result]:
    """Return the result of every cell in order, a list of one row or a Failure; show a progress bar.

    The cells run on the cluster of a scheduler if there is one. Raises InputError, NoSchedulerError.
    """
    if workers.scheduler is None:
        fitting = runs_at_once(workers.processes, [cell.memory_bytes for cell in cells], available_bytes())
        workers = replace(workers, processes=fitting, spread=at_once(simulator.stop))
    with Bar(len(cells)) as bar:
        work = partial(_simulated_here, simulator, bar, trace) if workers.scheduler is None else _simulated_there
        return run_cells(work, cells, workers, kept, bar.finished)


def _simulated_there(cell: FabricCell) -> list[Row]:
    """Simulate a cell on a worker of a cluster, with the program there.

    Raises NoSimulatorError, OtherSoftwareError, InputError, RunFailedError.
    """
    simulator = Simulator(program())
    if simulator.version() != cell.simulator:
        raise OtherSoftwareError(
            "the rack-fabric program of this worker differs from that of the command: build the same version on both"
        )
    runs_at_once(1, [cell.memory_bytes], available_bytes())
    return [simulator.run(cell.model)]


def _simulated_here(simulator: Simulator, bar: Bar, trace: Path | None, cell: FabricCell) -> list[Row]:
    with bar.under_way() as advance, nullcontext() if trace is None else whole_or_not(trace) as unfinished:
        return [simulator.run(cell.model, advance, unfinished)]
