"""One allocation of an instance: by a policy's order, by the anytime optimizer, or exactly.

A policy that sorts by time sees every request as submitted now, with a duration in seconds equal to its volume per
receiver. Rules that need history, deadlines or tenants do not apply to a single decision and are not offered.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from algorithms.b_matching import greedy
from algorithms.b_matching.exact import exact
from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup, members
from algorithms.b_matching.optimized import OptimizedSelection, Selection, bounded, fill, total
from algorithms.b_matching.optimizer import optimize, warm_up
from algorithms.b_matching.options import options
from algorithms.b_matching.relaxation import Relaxation, to_whole_units
from algorithms.scheduling import POLICIES
from algorithms.scheduling.job import Job
from algorithms.scheduling.policy import Policy, State
from algorithms.splitter_tree import max_leaves
from blast_sim.allocation.instance import Instance

ONE_SHOT = ("paper", "smith", "srpt-lease")
"""The policies whose order means something where all requests come at once."""

BOUND_SECONDS = 2.0
"""Wall time allowed for a bound where the method itself gives none."""

AT_REST = State(set_up=0.0)


@dataclass(frozen=True, slots=True)
class AllocationMethod:
    """An allocation method: the `policy` values requests; without a time budget, its order decides.

    `optimize` is the optimizer's time limit; `exact` the time limit of the integer program.
    """

    policy: str = "paper"
    optimize: float | None = None
    exact: float | None = None


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that is not served, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class AllocationPlan:
    """Served requests with their splitters, refused ones, and the allocation with its bound, decided in `seconds`."""

    selected: tuple[tuple[str, Pieces], ...]
    refused: tuple[RefusedRequest, ...]
    allocation: OptimizedSelection
    seconds: float


def plan(instance: Instance, method: AllocationMethod) -> AllocationPlan:
    """Allocate ports and splitters to the requests. Raises algorithms.b_matching.exact.MatchingSolverError."""
    groups, idle = instance.groups(), instance.feasibility()
    if method.optimize is not None:
        # The solver's first start takes longer than a decision may.
        warm_up()
    began = time.perf_counter()
    found = _decide(groups, idle, POLICIES[method.policy], method)
    seconds = time.perf_counter() - began
    selection = fill(found.selection, sorted(groups, key=greedy.score, reverse=True), idle)
    if found.bound is None or method.policy != "paper" or len(selection) > len(found.selection):
        found = with_bound(selection, groups, idle)
    names = [request.name for request in instance.requests]
    return AllocationPlan(
        tuple((names[_place(group)], tuple(sorted(pieces, reverse=True))) for group, pieces in selection),
        _refusals(instance, groups, selection),
        found,
        seconds,
    )


def _decide(
    groups: Sequence[CompetingGroup], idle: Feasibility, policy: Policy, method: AllocationMethod
) -> OptimizedSelection:
    jobs = [Job(group.name, group, 0, group.weight / (group.racks - 1), 0.0) for group in groups]
    if method.optimize is None and method.exact is None:
        order = sorted(jobs, key=lambda job: policy.key(job, 0.0, AT_REST))
        selection = greedy.select_in_order((job.group for job in order), idle.copy())
        return OptimizedSelection(selection, total(selection), None)
    worth = [replace(job.group, weight=policy.objective(job, AT_REST)) for job in jobs]
    if method.exact is not None:
        found = exact(worth, idle, method.exact)
    else:
        began, budget = time.perf_counter(), method.optimize or 0.0
        found = optimize(worth, idle, lambda: (time.perf_counter() - began) / budget, random.Random(0))
    return replace(found, selection=[(groups[_place(group)], pieces) for group, pieces in found.selection])


def with_bound(selection: Selection, groups: Sequence[CompetingGroup], idle: Feasibility) -> OptimizedSelection:
    """Return a selection with the linear relaxation's bound on any allocation; with none if that takes too long."""
    choices = options(groups, idle)
    if not len(choices):
        return OptimizedSelection(selection, total(selection), total(selection))
    choices, grid = to_whole_units(choices)
    began = time.perf_counter()
    relaxed = Relaxation(choices, lambda: time.perf_counter() - began > BOUND_SECONDS).solve()
    if relaxed is None or not choices.complete:
        return OptimizedSelection(selection, total(selection), None)
    return bounded(selection, grid, relaxed.bound)


def _refusals(instance: Instance, groups: Sequence[CompetingGroup], selection: Selection) -> tuple[RefusedRequest, ...]:
    left = instance.feasibility()
    served = set()
    for group, pieces in selection:
        left.take(group, pieces)
        served.add(group.name)
    idle = instance.feasibility()
    return tuple(
        RefusedRequest(instance.requests[_place(group)].name, _reason(instance, group, idle, left))
        for group in groups
        if group.name not in served
    )


def _reason(instance: Instance, group: CompetingGroup, idle: Feasibility, left: Feasibility) -> str:
    """Return why `group` is not served with the resources in `left`; permanent reasons come first."""
    portless = _racks(instance, group.ports & idle.full)
    if portless:
        return f"never possible: {portless} no optical port"
    if idle.fit(group) is None:
        return f"never possible: {_too_few(instance, group)}"
    busy = _racks(instance, group.ports & left.full)
    if busy:
        return f"{busy} no port left"
    return f"the splitters left ({pool_text(left.pool)}) do not make a tree of {group.leaves} leaves"


def _too_few(instance: Instance, group: CompetingGroup) -> str:
    limit = instance.max_splitters_per_tree
    reach = max_leaves(instance.pool, limit)
    allowed = "all splitters together" if limit is None else f"the largest {limit} splitters"
    return f"a tree of {group.leaves} leaves is needed, and {allowed} make one of {reach}"


def pool_text(pool: Mapping[int, int]) -> str:
    """Return splitters as text, such as `2 x 1:4, 1 x 1:16`, or `none`."""
    return ", ".join(f"{count} x 1:{fan_out}" for fan_out, count in sorted(pool.items()) if count) or "none"


def _racks(instance: Instance, ports: int) -> str:
    """Return the racks of these port vertices with their verb; an empty text if there are none."""
    racks = len(instance.ports)
    found = [
        f"{vertex % racks} ({'sending' if vertex < racks else 'receiving'})" if instance.directional else str(vertex)
        for vertex in members(ports)
    ]
    if len(found) <= 1:
        return "".join(f"rack {name} has" for name in found)
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return f"racks {', '.join(found[:4])}{more} have"


def _place(group: CompetingGroup) -> int:
    """Return the index of the request in its instance, by which `Instance.groups` names groups."""
    return int(str(group.name))
