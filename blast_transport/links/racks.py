"""Which receivers a sender reaches through which leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from blast_transport.base.host_order import natural_key

MAX_PER_LEADER = 32
"""Every leader costs the sender as much as one receiver does, and every member costs its leader as much."""


def groups(names: Sequence[str], racks: Mapping[str, str], largest_without: int) -> list[tuple[str, ...]]:
    """Return the receivers rack by rack, the leader first in each group; single ones if at most `largest_without`.

    Those of an unknown rack stand together, in natural order. A rack of many has several leaders.
    """
    if len(names) <= largest_without:
        return [(name,) for name in names]
    by_rack: dict[str | None, list[str]] = {}
    for name in sorted(names, key=natural_key):
        by_rack.setdefault(racks.get(name), []).append(name)
    found = []
    for members in by_rack.values():
        parts = -(-len(members) // MAX_PER_LEADER)
        bounds = [len(members) * part // parts for part in range(parts + 1)]
        found += [tuple(members[start:stop]) for start, stop in pairwise(bounds)]
    return found
