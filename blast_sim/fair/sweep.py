"""Max-min fair shares by progressive filling, compiled: a level rises and fills link after link.

The level of a link is its residual capacity, divided by the shares of its flows without a rate; levels only rise as
flows get their rates (Bertsekas and Gallager, Data Networks, section 6.5.2), so a binary heap with stale keys finds the
next link to fill. Keys far above the level wait outside the heap: most of them never matter. Most links never fill. A
flow's path begins with the links that may, its `tight` ones, and only these are visited; the slack of the others is the
flow's `safe` level (`blast_sim.fair.slack`).

A call with arrays costs 80 ns, because numba counts the references to each; so per-flow code is inlined in `_rise`.
Indices of its inner loops are unsigned, which saves a quarter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blast_sim.fair.compiling import at, compiled
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.members import END, Members
from blast_sim.fair.paths import Links, Numbers, Places

TIER = 4.0
UNSET = -1.0
TIGHT = -np.inf
"""The limit of a link that is not slack."""


class Work(NamedTuple):
    """Residual capacities of links, and the memory of one sweep.

    An item of the heap is a link, or the number of links + a flow with a cap. A slack link has a limit, the level up to
    which all of its flows may rise at once; its `left` is not maintained.
    """

    room: Numbers
    left: Numbers
    limits: Numbers
    claimed: Numbers
    waiting: Places
    chosen: Links
    batch: Links
    keys: Numbers
    items: Places

    @classmethod
    def of(cls, room: Numbers, flows: int, capped: int) -> Work:
        """Return memory for links of these capacities, empty and not slack.

        It has room for at most `flows` flows, `capped` of them with a cap.
        """
        links = len(room)
        limits, claimed, waiting = np.full(links, TIGHT), np.zeros(links), np.zeros(links, np.int64)
        none: Links = np.empty(0, np.int32)
        work = cls(room, room.copy(), limits, claimed, waiting, none, none, claimed, waiting)
        return work.resized(flows, capped)

    def resized(self, flows: int, capped: int) -> Work:
        """Return memory for the same links and `flows` flows."""
        items = np.empty(len(self.room) + capped, np.int64)
        # A batch is written one place beyond its length.
        chosen, batch = np.empty(flows, np.int32), np.empty(flows + 1, np.int32)
        return self._replace(chosen=chosen, batch=batch, keys=np.empty(len(items) + 1), items=items)


@compiled
def refill(flows: Columns, members: Members, work: Work, chosen: int) -> None:
    """Give new levels to `work.chosen[:chosen]`; all other flows keep theirs."""
    items, unset = _reopen(flows, work, chosen)
    _rise(flows, members, work, items, unset)


@compiled
def _reopen(flows: Columns, work: Work, chosen: int) -> tuple[int, int]:
    """Take the rates of the chosen flows back. How many items they bring, and how many of them wait for a level."""
    items, unset, links = 0, 0, len(work.left)
    for place in range(chosen):
        flow = at(work.chosen[place])
        level, share, ceiling = flows.levels[flow], flows.shares[flow], flows.ceilings[flow]
        first, last = flows.starts[flow], flows.starts[flow] + flows.tight[flow]
        if first == last:
            flows.levels[flow] = ceiling
            continue
        flows.levels[flow] = UNSET
        unset += 1
        rate = share * level if level < np.inf else 0.0
        for step in range(first, last):
            link = at(flows.links[at(step)])
            work.left[link] += rate
            if work.waiting[link] == 0:
                work.claimed[link] = 0.0
                work.items[at(items)] = np.int64(link)
                items += 1
            work.claimed[link] += share
            work.waiting[link] += 1
        if ceiling < np.inf:
            work.items[at(items)] = links + np.int64(flow)
            items += 1
    return items, unset


@compiled
def _rise(flows: Columns, members: Members, work: Work, size: int, unset: int) -> None:  # noqa: PLR0912, PLR0915
    """Let the level rise until no flow is without one."""
    starts, tight, uses, shares = flows.starts, flows.tight, flows.links, flows.shares
    levels = flows.levels
    left, claimed, waiting = work.left, work.claimed, work.waiting
    keys, items, batch = work.keys, work.items, work.batch
    links = len(left)
    level = 0.0
    inside, size, limit = _next_tier(flows, work, 0, size, level)
    while unset > 0:
        if inside == 0 or keys[0] > limit:
            inside, size, limit = _next_tier(flows, work, inside, size, level)
        item, old = items[0], keys[0]
        is_link = item < links
        if is_link:
            over = waiting[at(item)] == 0
            key = old if over else max(level, left[at(item)] / claimed[at(item)])
        else:
            over = levels[at(item - links)] != UNSET
            key = old
        fills = not over and key <= old
        if over or fills:
            inside -= 1
            size -= 1
            key, taken = keys[at(inside)], items[at(inside)]
            keys[at(inside)], items[at(inside)] = keys[at(size)], items[at(size)]
        else:
            taken = item
        # Sift it down from the top of the heap. The entry behind the heap is no smaller child: keys of items outside
        # are recomputed when they are visited.
        keys[at(inside)] = np.inf
        place = 0
        child = 1
        while child < inside:
            child += keys[at(child + 1)] < keys[at(child)]
            if keys[at(child)] >= key:
                break
            keys[at(place)], items[at(place)] = keys[at(child)], items[at(child)]
            place = child
            child = 2 * place + 1
        if inside > 0:
            keys[at(place)], items[at(place)] = key, taken
        if not fills:
            continue
        level = max(level, old)
        count = 0
        if is_link:
            # Without branches: which members still wait is unpredictable, and a misprediction costs more than this
            # loop. A flow that names a link twice is listed twice, one entry after the other.
            before = at(len(levels))
            for entry in range(members.starts[item], members.starts[item + 1]):
                flow = at(members.block[at(entry)])
                waits = (levels[flow] == UNSET) & (flow != before)
                before = flow
                batch[at(count)] = np.int32(flow)
                count += waits
            entry = members.heads[item]
            while entry != END:
                flow = at(members.late[entry])
                waits = (levels[flow] == UNSET) & (flow != before)
                before = flow
                batch[at(count)] = np.int32(flow)
                count += waits
                entry = members.following[entry]
        else:
            batch[0] = item - links
            count = 1
        unset -= count
        # The decrease of the link itself is summed first: flow by flow every sum would wait for the one before.
        taken, times = 0.0, 0
        for entry in range(count):
            flow = at(batch[at(entry)])
            levels[flow] = level
            share = shares[flow]
            for step in range(starts[flow], starts[flow] + tight[flow]):
                link = at(uses[at(step)])
                if np.int64(link) == item:
                    taken += share
                    times += 1
                else:
                    left[link] -= share * level
                    claimed[link] -= share
                    waiting[link] -= 1
        if is_link:
            left[item] -= taken * level
            claimed[item] -= taken
            waiting[item] -= times


@compiled
def _next_tier(flows: Columns, work: Work, inside: int, size: int, level: float) -> tuple[int, int, float]:
    """Move the lowest of the items behind the first `inside` ones, which are a heap, into it.

    How many are inside then, how many in all, and the key above which items are outside.
    """
    keys, items = work.keys, work.items
    links = len(work.left)
    min_key = keys[0] if inside else np.inf
    kept = inside
    for place in range(inside, size):
        item = items[at(place)]
        if item >= links:
            if flows.levels[at(item - links)] != UNSET:
                continue
            key = flows.ceilings[at(item - links)]
        elif work.waiting[at(item)] == 0:
            continue
        else:
            key = max(level, work.left[at(item)] / work.claimed[at(item)])
        keys[at(kept)], items[at(kept)] = key, item
        min_key = min(min_key, key)
        kept += 1
    limit = TIER * min_key
    for place in range(inside, kept):
        if keys[at(place)] <= limit:
            keys[at(inside)], keys[at(place)] = keys[at(place)], keys[at(inside)]
            items[at(inside)], items[at(place)] = items[at(place)], items[at(inside)]
            inside += 1
    keys[at(inside)] = np.inf
    for root in range(inside // 2 - 1, -1, -1):
        key, item = keys[root], items[root]
        place = root
        child = 2 * place + 1
        while child < inside:
            child += keys[at(child + 1)] < keys[at(child)]
            if keys[at(child)] >= key:
                break
            keys[at(place)], items[at(place)] = keys[at(child)], items[at(child)]
            place = child
            child = 2 * place + 1
        keys[at(place)], items[at(place)] = key, item
    return inside, kept, limit if inside < kept else np.inf
