"""The compiled loop behind `finish_times`: only flows whose level is found again are looked at between two events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blast_sim.fair.changes import choose, give_back, lowest_filled, take
from blast_sim.fair.compiling import compiled
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.fluid import SAME_TIME
from blast_sim.fair.members import Members, gather
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.sweep import Work, refill

FRESH = 32
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
    flows.alive[:] = False
    never = np.full(len(paths), np.inf)
    coming = np.argsort(begin, kind="stable")
    progress = Progress(left, begin.copy(), never, demands.weights, begin, coming, np.zeros(2))
    ends = never.copy()
    work = Work.of(room.copy(), len(paths), len(paths))
    problem = Problem(flows, room, work)
    while True:
        # The index of members is made anew when some of its flows have ended; so is what links have left, of which
        # thousands of additions lose some digits.
        work.left[:] = room
        take(flows, work, np.flatnonzero(flows.alive))
        if not _advance(problem, gather(flows, np.isinf(ends), len(room), 0), progress, ends):
            return ends


@compiled
def _advance(problem: Problem, members: Members, progress: Progress, ends: Numbers) -> bool:
    """Go from event to event. Whether flows remain to be looked at when some have ended."""
    flows, room, work = problem
    events = np.empty(len(ends), np.int64)
    remaining = 0
    for end in ends:
        remaining += end == np.inf
    ended = 0
    while ended <= max(FRESH, remaining // 16):
        now = min(_lowest(progress.due), _next_start(progress))
        if now == np.inf:
            return False
        over = _ending(progress, now, events)
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
        chosen = choose(flows, work, len(ends), bound)
        _bring_up(flows, work, progress, chosen, now)
        refill(flows, members, work, chosen)
        _look_ahead(flows, work, progress, chosen, now)
    return True


@compiled
def _lowest(values: Numbers) -> float:
    """The least of them; four at a time, because one comparison would wait for the one before."""
    a = b = c = d = np.inf
    whole = len(values) - len(values) % 4
    for place in range(0, whole, 4):
        a = min(a, values[place])
        b = min(b, values[place + 1])
        c = min(c, values[place + 2])
        d = min(d, values[place + 3])
    for place in range(whole, len(values)):
        a = min(a, values[place])
    return min(a, b, c, d)


@compiled
def _next_start(progress: Progress) -> float:
    place = int(progress.clock[1])
    return progress.begin[progress.coming[place]] if place < len(progress.coming) else np.inf


@compiled
def _ending(progress: Progress, now: float, events: Places) -> int:
    """Note the flows that end now. How many."""
    count = 0
    if now < np.inf:
        last = now * (1 + SAME_TIME)
        for flow in range(len(progress.due)):
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
def _look_ahead(flows: Columns, work: Work, progress: Progress, chosen: int, now: float) -> None:
    """Say when the chosen flows end at the rates that they have now."""
    for flow in work.chosen[:chosen]:
        left, rate = progress.left[flow], flows.levels[flow] * progress.weights[flow]
        if left <= 0 or rate == np.inf:
            progress.due[flow] = now
        else:
            progress.due[flow] = now + left / rate if rate > 0 else np.inf
