"""The samples of a workload: instances of a workload family, or the requests of an instance file."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from blast_sim.allocation import workloads
from blast_sim.allocation.instance import Instance, InstanceRequest
from blast_sim.allocation.instance_file import read_instance
from blast_sim.base.wrong_input import InputError


def from_family(name: str, racks: int, groups: int, samples: int) -> list[Instance]:
    """Return instances of a family with seeds 0, 1, … and its ports and splitters. Raises InputError."""
    if not is_family(name):
        known = ", ".join(workloads.FAMILIES)
        near = difflib.get_close_matches(name.removesuffix("+uni"), workloads.FAMILIES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"families are {known}"
        raise InputError(f"--workload {name!r} is neither a file nor a workload family: {hint}")
    too_small = InputError(f"the workload {name} has no requests of {groups} groups on {racks} racks: use more racks")
    try:
        made = [workloads.instance(name, seed, racks, groups) for seed in range(samples)]
    except ValueError:
        raise too_small from None
    if any(not one.edges or any(len(edge.racks) < 2 for edge in one.edges) for one in made):
        raise too_small
    return [_instance(one) for one in made]


def is_family(name: str) -> bool:
    """Return whether this names a workload family."""
    return name.removesuffix("+uni") in workloads.FAMILIES


def from_file(path: Path, racks: int | None) -> list[Instance]:
    """Return the requests of an instance file as the one sample, on `racks` racks (None: as in the file).

    Raises InputError, OSError.
    """
    instance = read_instance(path)
    if not instance.requests:
        raise InputError(f"{path} has no requests: add at least one")
    if racks is None:
        return [instance]
    for request in instance.requests:
        if max(request.racks) >= racks:
            raise InputError(
                f"request {request.name!r} has rack {max(request.racks)}, but --racks is {racks}: use more racks"
            )
    return [replace(instance, ports=(1,) * racks)]


def _instance(made: workloads.WorkloadInstance) -> Instance:
    requests = tuple(
        InstanceRequest(str(number), edge.racks[0], edge.racks[1:], edge.weight)
        for number, edge in enumerate(made.edges)
    )
    return Instance(made.budgets, made.pool, requests)
