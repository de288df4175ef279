"""Any trace by its name and format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from blast_sim.base.wrong_input import InputError
from blast_sim.traces.alibaba import read_alibaba
from blast_sim.traces.coflow_file import read_coflows
from blast_sim.traces.deriving import Rule, Volume, derived, first, repeated
from blast_sim.traces.jobs import Placement, workload_of
from blast_sim.traces.philly import read_philly
from blast_sim.traces.synthetic import OURS, sample
from blast_sim.traces.workload import Workload

Format = Literal["coflow", "philly", "alibaba"]
FORMATS: tuple[Format, ...] = ("coflow", "philly", "alibaba")


@dataclass(frozen=True, slots=True)
class Derivation:
    """Rules that derive a workload from a trace; results record the assumptions.

    `rule` is for coflow traces, `machines_per_rack` and `placement` for job tables.
    """

    rule: Rule = "job-broadcast"
    volume: Volume = field(default_factory=Volume)
    seed: int = 0
    iterations: int = 1
    period: float = 1.0
    first: int | None = None
    machines_per_rack: int = 40
    placement: Placement = "sorted"


def load_workload(name: str, form: Format, how: Derivation) -> Workload:
    """Return the workload of this trace: a file, or a built-in one by name. Raises InputError, OSError."""
    if form == "coflow":
        trace = sample(name) if name in OURS else read_coflows(Path(name))
        workload = derived(trace, how.rule, how.volume, how.seed)
    elif how.volume.measure is not None:
        raise InputError(f"job tables hold no sizes, so --volume {how.volume.measure} has none: give megabytes")
    else:
        table = read_philly(Path(name)) if form == "philly" else read_alibaba(Path(name))
        workload = workload_of(table, how.machines_per_rack, how.placement, how.volume, how.seed)
    if how.first is not None:
        workload = first(workload, how.first)
    if how.iterations > 1:
        workload = repeated(workload, how.iterations, how.period)
    if not workload.multicasts:
        raise InputError(f"{name} has no multicast by the rule {workload.rules['rule']!r}: take another rule or trace")
    return workload
