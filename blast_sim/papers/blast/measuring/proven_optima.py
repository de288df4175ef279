"""Proven optima of benchmark instances, kept in `optima.json`, and how they are found."""

from __future__ import annotations

import gc
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol

from algorithms.b_matching.exact import exact
from algorithms.b_matching.optimized import OptimizedSelection
from algorithms.b_matching.optimizer import optimize
from blast_sim.allocation import workloads

OPTIMA = Path(__file__).with_name("optima.json")

BEST_KNOWN_SECONDS = 10.0
"""Seconds in which the optimizer searches the best value if nothing is proven."""

KNOWN_WITHIN = 1e-6
"""Relative accuracy of an optimum that others are measured by: shares are printed to 1e-4."""

Clock = Callable[[], float]
"""Seconds: on the wall, or of this process's CPU."""


class Drawn(Protocol):
    """Something that has an instance for each seed."""

    @property
    def label(self) -> str:
        """Its own name."""

    def instance(self, seed: int) -> workloads.WorkloadInstance:
        """Return the instance of this seed."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The heaviest allocation known of one instance, and the bound that was proven on any."""

    value: float
    bound: float

    @property
    def proven(self) -> bool:
        """True if no solution is better by more than `KNOWN_WITHIN`."""
        return self.value >= self.bound * (1 - KNOWN_WITHIN)


NOTHING_KNOWN = Reference(0.0, math.inf)


def name_of(case: Drawn, seed: int) -> str:
    """Return the name of an instance in the file."""
    return f"{case.label} seed {seed}"


def known_optima() -> dict[str, Reference]:
    """Return the content of the file, by the names of instances."""
    data = json.loads(OPTIMA.read_text())
    return {name: Reference(*entry) for name, entry in data["optima"].items()}


def prove(cases: Iterable[Drawn], seeds: Iterable[int], seconds: float) -> None:
    """Solve every instance of these cases exactly and store new results in the file."""
    optima = known_optima() if OPTIMA.exists() else {}
    for case in cases:
        for seed in seeds:
            name = name_of(case, seed)
            print(f"\r{name:60}", end="", file=sys.stderr, flush=True)
            known = optima.get(name, NOTHING_KNOWN)
            if not known.proven:
                optima[name] = _better(known, case.instance(seed), seconds)
                _write(optima)


def within(instance: workloads.WorkloadInstance, seconds: float, clock: Clock) -> tuple[OptimizedSelection, float]:
    """Return the optimizer's result within this budget, and the seconds that it took."""
    groups, feasibility = instance.groups(), instance.feasibility()
    gc.collect()
    began = clock()
    found = optimize(groups, feasibility, lambda: (clock() - began) / seconds, random.Random(instance.seed))
    return found, clock() - began


def _better(known: Reference, instance: workloads.WorkloadInstance, seconds: float) -> Reference:
    proof = exact(instance.groups(), instance.feasibility(), seconds)
    bound = min(known.bound, math.inf if proof.bound is None else proof.bound)
    found = Reference(proof.value, bound)
    if found.proven:
        return found
    searched, _ = within(instance, BEST_KNOWN_SECONDS, time.process_time)
    return Reference(max(known.value, proof.value, searched.value), bound)


def _write(optima: Mapping[str, Reference]) -> None:
    about = (
        "Value and proven upper bound of each benchmark instance, by allocation_quality.py --prove: integer program "
        "solved by HiGHS; where that ended without proof, the value is the best of the solver's and of "
        f"{BEST_KNOWN_SECONDS:.0f} s of the optimizer."
    )
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(astuple(found))}" for name, found in optima.items())
    OPTIMA.write_text(f'{{"about": {json.dumps(about)},\n"optima": {{\n{lines}\n}}}}\n')
