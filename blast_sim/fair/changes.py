"""The lowest level that a change affects, compiled.

Filling is a history of rising levels. Below the lowest level at which a changed link fills, before or after the change,
that history is unchanged.
"""

from __future__ import annotations

import numpy as np

from blast_sim.fair.compiling import at, compiled
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.members import END, Members
from blast_sim.fair.paths import Numbers, Places
from blast_sim.fair.sweep import Work

ROUNDING = 1e-12
"""Links whose levels differ by rounding alone fill at the same time."""
MAX_STEPS = 64
"""Each step is exact for at least one more flow, and few are near one level."""


@compiled
def give_back(flows: Columns, work: Work, removed: Places) -> float:
    """Return the rates of removed flows to their links; return the lowest level among them."""
    lowered = np.inf
    for flow in removed:
        level = flows.levels[flow]
        if level == np.inf:
            continue
        lowered = min(lowered, level)
        for step in range(flows.starts[flow], flows.starts[flow] + flows.tight[flow]):
            work.left[flows.links[step]] += flows.shares[flow] * level
    return lowered


@compiled
def min_filled_level(flows: Columns, members: Members, work: Work, room: Numbers, new: Places) -> float:
    """Return the lowest level at which a link of the new flows could fill, if all others kept their levels."""
    filled = np.inf
    for flow in new:
        for step in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
            link = flows.links[step]
            if work.waiting[link] == 0:
                work.waiting[link] = 1
                filled = min(filled, _filled_at(flows, members, link, room[link]))
    for flow in new:
        for step in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
            work.waiting[flows.links[step]] = 0
    return filled


@compiled
def choose(flows: Columns, work: Work, ids: int, bound: float) -> int:
    """Store the flows at and above this level in `work.chosen`; return their number."""
    chosen = 0
    threshold = bound * (1 - ROUNDING)
    for flow in range(ids):
        work.chosen[at(chosen)] = flow
        chosen += flows.alive[at(flow)] & (flows.levels[at(flow)] >= threshold)
    return chosen


@compiled
def _filled_at(flows: Columns, members: Members, link: int, room: float) -> float:
    """Return the level at which a link fills, approached from below in at most `MAX_STEPS` steps.

    The link fills where the sum over its flows of share x min(level, own level) reaches its room.
    """
    level = 0.0
    for _ in range(MAX_STEPS):
        below, above = 0.0, 0.0
        for place in range(members.starts[link], members.starts[link + 1]):
            below, above = _add(flows, members.block[place], level, below, above)
        place = members.heads[link]
        while place != END:
            below, above = _add(flows, members.late[place], level, below, above)
            place = members.following[place]
        risen = (room - below) / above
        if risen <= level * (1 + ROUNDING):
            break
        level = risen
    return level


@compiled
def _add(flows: Columns, flow: int, level: float, below: float, above: float) -> tuple[float, float]:
    if not flows.alive[flow]:
        return below, above
    if flows.levels[flow] < level:
        return below + flows.shares[flow] * flows.levels[flow], above
    return below, above + flows.shares[flow]


@compiled
def take(flows: Columns, work: Work, present: Places) -> None:
    """Take the rates of these flows from their links."""
    for flow in present:
        level = flows.levels[flow]
        if level < np.inf:
            for step in range(flows.starts[flow], flows.starts[flow] + flows.tight[flow]):
                work.left[flows.links[step]] -= flows.shares[flow] * level
