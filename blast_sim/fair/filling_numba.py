"""Max-min fair shares by progressive filling, compiled: links in the order of their levels from a binary heap."""

from __future__ import annotations

import numpy as np

from blast_sim.fair.compiling import compiled
from blast_sim.fair.paths import Links, Numbers, Paths, Places


def fill(room: Numbers, paths: Paths, weights: Numbers, multiplicity: Numbers, caps: Numbers) -> Numbers:
    """As `filling_numpy.fill`."""
    starts, flows = _flows_of_links(paths.offsets, paths.links, len(room))
    return _filled(room, paths.offsets, paths.links, starts, flows, weights, multiplicity, caps)


@compiled
def _flows_of_links(offsets: Places, links: Links, count: int) -> tuple[Places, Links]:
    """The transpose of the paths: the flows of link l are `flows[starts[l]:starts[l + 1]]`."""
    starts = np.zeros(count + 1, np.int64)
    for link in links:
        starts[link + 1] += 1
    for link in range(count):
        starts[link + 1] += starts[link]
    free = starts[:-1].copy()
    flows = np.empty(len(links), np.int32)
    for flow in range(len(offsets) - 1):
        for place in range(offsets[flow], offsets[flow + 1]):
            link = links[place]
            flows[free[link]] = flow
            free[link] += 1
    return starts, flows


@compiled
def _sift_down(keys: Numbers, items: Places, size: int, place: int) -> None:
    """Let the entry at `place` of the heap sink to where it belongs."""
    key, item = keys[place], items[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[place], items[place] = keys[child], items[child]
        place = child
    keys[place], items[place] = key, item


@compiled
def _filled(  # noqa: PLR0912, PLR0913, PLR0915, PLR0917
    room: Numbers,
    offsets: Places,
    links: Links,
    starts: Places,
    flows: Links,
    weights: Numbers,
    multiplicity: Numbers,
    caps: Numbers,
) -> Numbers:
    count, total = len(room), len(offsets) - 1
    left = room.copy()
    claimed = np.zeros(count)
    waiting = np.zeros(count, np.int64)
    levels = np.full(total, -1.0)
    unset = 0
    keys = np.empty(count + total)
    items = np.empty(count + total, np.int64)
    size = 0
    for flow in range(total):
        cap = caps[flow] / weights[flow]
        if offsets[flow] == offsets[flow + 1]:
            levels[flow] = cap
            continue
        unset += 1
        share = weights[flow] * multiplicity[flow]
        for place in range(offsets[flow], offsets[flow + 1]):
            claimed[links[place]] += share
            waiting[links[place]] += 1
        if cap < np.inf:
            # A cap is a link of the flow's own.
            keys[size], items[size] = cap, count + flow
            size += 1
    for link in range(count):
        if waiting[link] > 0:
            keys[size], items[size] = max(left[link], 0.0) / claimed[link], link
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        _sift_down(keys, items, size, place)
    level = 0.0
    while unset > 0:
        item = items[0]
        gone = waiting[item] == 0 if item < count else levels[item - count] >= 0
        if not gone and item < count:
            now = max(level, max(left[item], 0.0) / claimed[item])
            if now > keys[0]:
                keys[0] = now
                _sift_down(keys, items, size, 0)
                continue
        key = keys[0]
        size -= 1
        keys[0], items[0] = keys[size], items[size]
        _sift_down(keys, items, size, 0)
        if gone:
            continue
        level = key
        first, last = (starts[item], starts[item + 1]) if item < count else (0, 1)
        for entry in range(first, last):
            flow = flows[entry] if item < count else item - count
            if levels[flow] >= 0:
                continue
            levels[flow] = level
            unset -= 1
            share = weights[flow] * multiplicity[flow]
            for place in range(offsets[flow], offsets[flow + 1]):
                link = links[place]
                left[link] -= share * level
                claimed[link] -= share
                waiting[link] -= 1
    return levels
