"""Links that limit no flow are found and left out: in a fabric these are nearly all.

A link never fills as long as all its flows stay at or below its limit, capacity / claim per unit of level. So a filling
may skip it if the result is checked: if a flow exceeds the limit, the link is marked tight and the filling is repeated.
The rates are those of all links.
"""

from __future__ import annotations

import numpy as np

from blast_sim.fair.compiling import compiled
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.members import Members
from blast_sim.fair.paths import Places
from blast_sim.fair.sweep import TIGHT, Work, refill

FILLED = 1e-9
"""Maximum residual share of the capacity of a link that limits flows."""

AHEAD = 1.25
"""Factor between the current levels of a slack link's flows and its limit: levels rise as flows end."""


@compiled
def part(flows: Columns, work: Work, some: Places) -> None:
    """Separate tight links from slack ones; no flows may be added later. `work.left` must cover all links."""
    claimed, limits = work.claimed, work.limits
    claimed[:] = 0.0
    max_levels = np.zeros(len(limits))
    for flow in some:
        level = flows.levels[flow] if flows.levels[flow] < np.inf else 0.0
        for step in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
            link = flows.links[step]
            claimed[link] += flows.shares[flow]
            max_levels[link] = max(max_levels[link], level)
    for link in range(len(limits)):
        limit = work.room[link] / claimed[link] if claimed[link] > 0 else 0.0
        filled = work.left[link] <= FILLED * work.room[link]
        limits[link] = TIGHT if filled or limit < AHEAD * max_levels[link] else limit
    for flow in some:
        _keep_one(flows, work, flow)
    for flow in some:
        _order(flows, work, flow)


@compiled
def _keep_one(flows: Columns, work: Work, flow: int) -> None:
    """Mark a tight link in a flow that has none: the one with the lowest limit."""
    chosen = -1
    for step in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
        link = flows.links[step]
        if chosen < 0 or work.limits[link] < work.limits[chosen]:
            chosen = link
    if chosen >= 0:
        work.limits[chosen] = TIGHT


@compiled
def _order(flows: Columns, work: Work, flow: int) -> None:
    """Put tight links first, and note up to which level the others are safe."""
    first = flows.starts[flow]
    tight, safe = 0, np.inf
    for step in range(first, first + flows.lengths[flow]):
        link = flows.links[step]
        if work.limits[link] == TIGHT:
            flows.links[step], flows.links[first + tight] = flows.links[first + tight], link
            tight += 1
        else:
            safe = min(safe, work.limits[link])
    flows.tight[flow], flows.safe[flow] = tight, safe


@compiled
def refill_tight(flows: Columns, members: Members, work: Work, chosen: int) -> None:
    """Give new levels to `work.chosen[:chosen]`, again until no slack link is beyond its limit."""
    refill(flows, members, work, chosen)
    while _tighten(flows, members, work, chosen):
        refill(flows, members, work, chosen)


@compiled
def _tighten(flows: Columns, members: Members, work: Work, chosen: int) -> bool:
    """Make links tight whose limit one of these flows exceeds. Whether there were any."""
    found = False
    for flow in work.chosen[:chosen]:
        if flows.levels[flow] <= flows.safe[flow]:
            continue
        for step in range(flows.starts[flow] + flows.tight[flow], flows.starts[flow] + flows.lengths[flow]):
            link = flows.links[step]
            if TIGHT < work.limits[link] < flows.levels[flow]:
                work.limits[link] = TIGHT
                _count_in(flows, members, work, link)
                found = True
        _order(flows, work, flow)
    return found


@compiled
def _count_in(flows: Columns, members: Members, work: Work, link: int) -> None:
    """Compute the residual capacity of a link that has become tight, and its place in the paths of its flows."""
    left = work.room[link]
    for place in range(members.starts[link], members.starts[link + 1]):
        flow = members.block[place]
        if flows.alive[flow] and flows.levels[flow] < np.inf:
            left -= flows.shares[flow] * flows.levels[flow]
    work.left[link] = left
    for place in range(members.starts[link], members.starts[link + 1]):
        _order(flows, work, members.block[place])
