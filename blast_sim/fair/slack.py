"""Links at which no flow is held, found and left out: in a fabric these are nearly all.

A link at which the flows of a problem claim so much for each unit of level never fills as long as all of them stay at
or below its limit, room / claim. So a filling may leave it out if that is looked at afterwards: where a flow has come
above the limit the link is tight from then on, and the filling is done again. The rates are those of all links.
"""

from __future__ import annotations

import numpy as np

from blast_sim.fair.compiling import compiled
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.members import Members
from blast_sim.fair.paths import Places
from blast_sim.fair.sweep import TIGHT, Work, refill

FILLED = 1e-9
"""Share of its room that a link has left at most where it holds flows."""

AHEAD = 1.25
"""How far above what its flows have now the limit of a slack link is: levels rise as flows end."""


@compiled
def part(flows: Columns, work: Work, some: Places) -> None:
    """Tell tight links from slack ones; these are all flows that there will be. `work.left` must be of all links."""
    claimed, limits = work.claimed, work.limits
    claimed[:] = 0.0
    highest = np.zeros(len(limits))
    for flow in some:
        level = flows.levels[flow] if flows.levels[flow] < np.inf else 0.0
        for step in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
            link = flows.links[step]
            claimed[link] += flows.shares[flow]
            highest[link] = max(highest[link], level)
    for link in range(len(limits)):
        limit = work.room[link] / claimed[link] if claimed[link] > 0 else 0.0
        filled = work.left[link] <= FILLED * work.room[link]
        limits[link] = TIGHT if filled or limit < AHEAD * highest[link] else limit
    for flow in some:
        _keep_one(flows, work, flow)
    for flow in some:
        _order(flows, work, flow)


@compiled
def _keep_one(flows: Columns, work: Work, flow: int) -> None:
    """Every flow has a tight link: of those that have none, the one with the lowest limit."""
    lowest = -1
    for step in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
        link = flows.links[step]
        if lowest < 0 or work.limits[link] < work.limits[lowest]:
            lowest = link
    if lowest >= 0:
        work.limits[lowest] = TIGHT


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
    """A link has become tight: what its flows leave of it, and its place in their paths."""
    left = work.room[link]
    for place in range(members.starts[link], members.starts[link + 1]):
        flow = members.block[place]
        if flows.alive[flow] and flows.levels[flow] < np.inf:
            left -= flows.shares[flow] * flows.levels[flow]
    work.left[link] = left
    for place in range(members.starts[link], members.starts[link + 1]):
        _order(flows, work, members.block[place])
