"""The compiled loop behind `finish_times`: only flows whose level is found again are looked at between two events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blast_sim.fair.changes import ROUNDING, give_back, lowest_filled, take
from blast_sim.fair.compiling import compiled
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.members import Members, gather
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.same_time import SAME_TIME
from blast_sim.fair.slack import part, refill_tight
from blast_sim.fair.sweep import Work

FRESH = 128
"""So many flows end at least before the index is made anew."""


class Progress(NamedTuple):
    """The bits that flows had left at the time `since`, when they end at the rates that they have, and their weights.

    Flows before `coming[clock[1]]` have started; `clock[0]` is the time.
    """

    left: Numbers
    since: Numbers
    due: Numbers
    weights: Numbers
    begin: Numbers
    coming: Places
    clock: Numbers


class Problem(NamedTuple):
    """Flows, which start and end, on links of so much room."""

    flows: Columns
    room: Numbers
    work: Work


def run(room: Numbers, paths: Paths, left: Numbers, begin: Numbers, demands: Demands) -> Numbers:
    """When flows end, infinite for those that never do. `left` is used up."""
    flows = Columns.of(paths, demands)
    # The order of links in paths will be changed.
    flows = flows._replace(links=flows.links.copy())
    flows.alive[:] = False
    never = np.full(len(paths), np.inf)
    coming = np.argsort(begin, kind="stable")
    progress = Progress(left, begin.copy(), never, demands.weights, begin, coming, np.zeros(2))
    ends = never.copy()
    work = Work.of(room, len(paths), len(paths))
    problem = Problem(flows, room, work)
    while True:
        # The index of members is made anew when some of its flows have ended; so is what links have left, of which
        # thousands of additions lose some digits.
        work.left[:] = room
        flows.tight[:] = flows.lengths
        take(flows, work, np.flatnonzero(flows.alive))
        unended = np.flatnonzero(np.isinf(ends))
        part(flows, work, unended)
        if not _advance(problem, gather(flows, np.isinf(ends), len(room), 0), progress, ends, unended):
            return ends


@compiled
def _advance(problem: Problem, members: Members, progress: Progress, ends: Numbers, unended: Places) -> bool:
    """Go from event to event. Whether flows remain to be looked at when some have ended."""
    flows, room, work = problem
    events = np.empty(len(unended), np.int64)
    following = np.inf
    for flow in unended:
        following = min(following, progress.due[flow])
    ended = 0
    while ended <= max(FRESH, len(unended) // 8):
        now = min(following, _next_start(progress))
        if now == np.inf:
            return False
        over = _ending(progress, now, unended, events)
        for flow in events[:over]:
            flows.alive[flow] = False
            ends[flow] = now
            progress.due[flow] = np.inf
        ended += over
        bound = give_back(flows, work, events[:over])
        come = _starting(progress, now, events)
        for flow in events[:come]:
            flows.alive[flow] = True
        bound = min(bound, lowest_filled(flows, members, work, room, events[:come]))
        chosen, unchanged = _choose(flows, work, progress, unended, bound)
        _bring_up(flows, work, progress, chosen, now)
        refill_tight(flows, members, work, chosen)
        following = min(unchanged, _look_ahead(flows, work, progress, chosen, now))
    return True


@compiled
def _choose(flows: Columns, work: Work, progress: Progress, unended: Places, bound: float) -> tuple[int, float]:
    """Note the flows at and above this level in `work.chosen`. How many, and when the first of the others ends."""
    chosen, first = 0, np.inf
    least = bound * (1 - ROUNDING)
    for flow in unended:
        wanted = flows.alive[flow] and flows.levels[flow] >= least
        work.chosen[chosen] = flow
        chosen += wanted
        first = min(first, np.inf if wanted else progress.due[flow])
    return chosen, first


@compiled
def _next_start(progress: Progress) -> float:
    place = int(progress.clock[1])
    return progress.begin[progress.coming[place]] if place < len(progress.coming) else np.inf


@compiled
def _ending(progress: Progress, now: float, unended: Places, events: Places) -> int:
    """Note the flows that end now. How many."""
    count = 0
    if now < np.inf:
        last = now * (1 + SAME_TIME)
        for flow in unended:
            if progress.due[flow] <= last:
                events[count] = flow
                count += 1
    return count


@compiled
def _starting(progress: Progress, now: float, events: Places) -> int:
    """Note the flows that start now. How many."""
    count = 0
    while _next_start(progress) <= now:
        events[count] = progress.coming[int(progress.clock[1])]
        progress.clock[1] += 1
        count += 1
    return count


@compiled
def _bring_up(flows: Columns, work: Work, progress: Progress, chosen: int, now: float) -> None:
    """Take off what the chosen flows have carried since their rates were set."""
    for flow in work.chosen[:chosen]:
        if flows.levels[flow] < np.inf:
            progress.left[flow] -= flows.levels[flow] * progress.weights[flow] * (now - progress.since[flow])
        progress.since[flow] = now


@compiled
def _look_ahead(flows: Columns, work: Work, progress: Progress, chosen: int, now: float) -> float:
    """Say when the chosen flows end at the rates that they have now; when the first of them does."""
    first = np.inf
    for flow in work.chosen[:chosen]:
        left, rate = progress.left[flow], flows.levels[flow] * progress.weights[flow]
        if left <= 0 or rate == np.inf:
            progress.due[flow] = now
        else:
            progress.due[flow] = now + left / rate if rate > 0 else np.inf
        first = min(first, progress.due[flow])
    return first
