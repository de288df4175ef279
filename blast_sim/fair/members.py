"""Which flows use a link: the transpose of their paths, kept up to date as flows come.

Flows of the last building stand in one block for each link, later ones in a chain; flows that have gone stay in both
until the next building.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blast_sim.fair.compiling import compiled
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.paths import Links, Places

END = -1


class Members(NamedTuple):
    """Flows `block[starts[l]:starts[l + 1]]`, then `late[e]` for e = `heads[l]`, `following[e]`, … until END."""

    starts: Places
    block: Links
    heads: Places
    following: Places
    late: Links


def gather(flows: Columns, selected: NDArray[np.bool_], links: int, late: int) -> Members:
    """Return the members of every link among the `selected` flows.

    There is room for `late` uses of links by later flows.
    """
    starts, block = _transposed(flows, selected, links)
    heads = np.full(links, END, np.int64)
    return Members(starts, block, heads, np.empty(late, np.int64), np.empty(late, np.int32))


@compiled
def _transposed(flows: Columns, selected: NDArray[np.bool_], links: int) -> tuple[Places, Links]:
    starts = np.zeros(links + 1, np.int64)
    for flow in range(len(selected)):
        if selected[flow]:
            for place in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
                starts[flows.links[place] + 1] += 1
    for link in range(links):
        starts[link + 1] += starts[link]
    free = starts[:-1].copy()
    block = np.empty(starts[links], np.int32)
    for flow in range(len(selected)):
        if selected[flow]:
            for place in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
                link = flows.links[place]
                block[free[link]] = flow
                free[link] += 1
    return starts, block


@compiled
def append(members: Members, flows: Columns, new: Places, used: int) -> int:
    """Chain these flows to their links after `used` entries; return the number of entries used then."""
    for flow in new:
        for place in range(flows.starts[flow], flows.starts[flow] + flows.lengths[flow]):
            link = flows.links[place]
            members.late[used] = flow
            members.following[used] = members.heads[link]
            members.heads[link] = used
            used += 1
    return used
