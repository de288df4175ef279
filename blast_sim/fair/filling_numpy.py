"""Max-min fair shares by progressive filling, a round of numpy at a time.

The level of a link is what it has left, divided by the weights of its flows that have no rate yet; a flow can get no
more than its weight times the lowest level of its links. Filling link after link in order of their levels is the
textbook (Bertsekas and Gallager, Data Networks, section 6.5.2); here every round fills all links at once at which no
flow is held lower elsewhere, which gives the same rates (levels only rise) in few rounds.
"""

from __future__ import annotations

import numpy as np

from blast_sim.fair.paths import Numbers, Paths


def fill(room: Numbers, paths: Paths, weights: Numbers, multiplicity: Numbers, caps: Numbers) -> Numbers:
    """The level of every flow: its rate divided by its weight.

    `room` is what each link has for these flows. Rates, weights and caps are those of one flow; `multiplicity` flows
    share each path.
    """
    links = len(room)
    room = room.copy()
    levels = np.divide(caps, weights)
    flows = np.flatnonzero(paths.lengths)
    active = paths.take(flows)
    shares = (weights * multiplicity)[flows]
    while len(flows):
        level, lowest = _levels(active, room, shares, levels[flows])
        # A link is filled when it is the lowest of all of its flows.
        below = np.full(links, np.inf)
        _lower(below, active, lowest)
        filled = np.where(below >= level, level, np.inf)
        done = (levels[flows] <= lowest) | (np.minimum.reduceat(filled[active.links], active.offsets[:-1]) <= lowest)
        levels[flows[done]] = lowest[done]
        room -= _loads(active.take(done), (shares * lowest)[done], links)
        kept = ~done
        flows, shares, active = flows[kept], shares[kept], active.take(kept)
    return levels


def _levels(active: Paths, room: Numbers, shares: Numbers, caps: Numbers) -> tuple[Numbers, Numbers]:
    """The level of every link (infinite where no flow is left) and the lowest that every flow meets."""
    claimed = _loads(active, shares, len(room))
    level = np.full(len(room), np.inf)
    np.divide(np.maximum(room, 0.0), claimed, out=level, where=claimed > 0)
    return level, np.minimum(np.minimum.reduceat(level[active.links], active.offsets[:-1]), caps)


def _lower(below: Numbers, active: Paths, lowest: Numbers) -> None:
    np.minimum.at(below, active.links, np.repeat(lowest, active.lengths))


def _loads(paths: Paths, amounts: Numbers, links: int) -> Numbers:
    """What these flows put on every link."""
    loads: Numbers = np.bincount(paths.links, np.repeat(amounts, paths.lengths), links).astype(np.float64, copy=False)
    return loads
