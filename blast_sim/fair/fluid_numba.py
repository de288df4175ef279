"""The compiled loop behind `finish_times`: only flows whose level is found again are looked at between two events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blast_sim.fair.changes import choose, give_back, min_filled_level, take
from blast_sim.fair.compiling import at, compiled, compiled_without_nan
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.members import Members, gather
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.same_time import SAME_TIME
from blast_sim.fair.slack import part, refill_tight
from blast_sim.fair.sweep import Work

FRESH = 128
"""Minimum number of flow ends before the index is rebuilt."""


class FlowProgress(NamedTuple):
    """The bits that flows had left at the time `since`, when they end at the rates that they have, and their weights.

    Flows before `coming[started[0]]` have started.
    """

    left: Numbers
    since: Numbers
    due: Numbers
    weights: Numbers
    begin: Numbers
    coming: Places
    started: Places


class Problem(NamedTuple):
    """Flows, which start and end, on links with capacities `room`."""

    flows: Columns
    room: Numbers
    work: Work


def run(room: Numbers, paths: Paths, left: Numbers, begin: Numbers, demands: Demands) -> Numbers:
    """Return the end times of flows, infinite for flows that never end. `left` is consumed."""
    ends = np.full(len(paths), np.inf)
    ids = np.arange(len(paths))
    work = Work.of(room, len(paths), len(paths))
    flows = Columns.of(paths, demands)
    flows.alive[:] = False
    since, due = begin.copy(), ends.copy()
    while True:
        # Rebuild the table without ended flows, so that the rest is contiguous in memory; also recompute the residual
        # capacities of links, because thousands of additions lose digits. The order of links in paths changes.
        flows = flows._replace(links=flows.links.copy())
        coming = np.flatnonzero(~flows.alive)
        coming = coming[np.argsort(begin[coming], kind="stable")]
        progress = FlowProgress(left, since, due, demands.weights, begin, coming, np.zeros(1, np.int64))
        work.left[:] = room
        take(flows, work, np.flatnonzero(flows.alive))
        part(flows, work, np.arange(len(ids)))
        over = np.zeros(len(ids), np.bool_)
        members = gather(flows, ~over, len(room), 0)
        going = _advance(Problem(flows, room, work), members, progress, over)
        ends[ids[over]] = progress.since[over]
        if not going:
            return ends
        stay = np.flatnonzero(~over)
        ids, paths, demands = ids[stay], paths.take(stay), demands.take(stay)
        left, begin, since, due = left[stay], begin[stay], progress.since[stay], progress.due[stay]
        flows = Columns.of(paths, demands)._replace(levels=flows.levels[stay], alive=flows.alive[stay])


@compiled
def _advance(problem: Problem, members: Members, progress: FlowProgress, over: NDArray[np.bool_]) -> bool:
    """Go from event to event and note the flows that are over. Whether flows remain to be looked at when some are."""
    flows, room, work = problem
    count = len(over)
    events = np.empty(count, np.int64)
    total = 0
    while total <= max(FRESH, count // 8):
        now = min(_earliest(progress.due), _next_start(progress))
        if now == np.inf:
            return False
        ended = _ending(progress, now, events)
        bound = give_back(flows, work, events[:ended])
        for flow in events[:ended]:
            flows.alive[flow] = False
            over[flow] = True
            progress.since[flow] = now
            progress.due[flow] = np.inf
        total += ended
        come = _starting(progress, now, events)
        for flow in events[:come]:
            flows.alive[flow] = True
        bound = min(bound, min_filled_level(flows, members, work, room, events[:come]))
        chosen = choose(flows, work, count, bound)
        _bring_up(flows, work, progress, chosen, now)
        refill_tight(flows, members, work, chosen)
        _look_ahead(flows, work, progress, chosen, now)
    return True


@compiled_without_nan
def _earliest(due: Numbers) -> float:
    """Return the first of these times."""
    first = np.inf
    for flow in range(len(due)):
        first = due[at(flow)] if due[at(flow)] < first else first
    return first


@compiled
def _next_start(progress: FlowProgress) -> float:
    place = progress.started[0]
    return progress.begin[progress.coming[place]] if place < len(progress.coming) else np.inf


@compiled
def _ending(progress: FlowProgress, now: float, events: Places) -> int:
    """Note the flows that end now. How many."""
    count = 0
    if now < np.inf:
        last = now * (1 + SAME_TIME)
        for flow in range(len(progress.due)):
            events[at(count)] = flow
            count += progress.due[at(flow)] <= last
    return count


@compiled
def _starting(progress: FlowProgress, now: float, events: Places) -> int:
    """Note the flows that start now. How many."""
    count = 0
    while _next_start(progress) <= now:
        events[count] = progress.coming[progress.started[0]]
        progress.started[0] += 1
        count += 1
    return count


@compiled
def _bring_up(flows: Columns, work: Work, progress: FlowProgress, chosen: int, now: float) -> None:
    """Take off what the chosen flows have carried since their rates were set."""
    for place in range(chosen):
        flow = at(work.chosen[at(place)])
        if flows.levels[flow] < np.inf:
            progress.left[flow] -= flows.levels[flow] * progress.weights[flow] * (now - progress.since[flow])
        progress.since[flow] = now


@compiled
def _look_ahead(flows: Columns, work: Work, progress: FlowProgress, chosen: int, now: float) -> None:
    """Compute when the chosen flows end at their current rates."""
    for place in range(chosen):
        flow = at(work.chosen[at(place)])
        left, rate = progress.left[flow], flows.levels[flow] * progress.weights[flow]
        if left <= 0 or rate == np.inf:
            progress.due[flow] = now
        else:
            progress.due[flow] = now + left / rate if rate > 0 else np.inf
