"""Activity over time, computed from metadata of blocks without reading them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from blast_controller.history.past import Bucket


class ActivityPiece(NamedTuple):
    """The first and the last wall time, how many moments, and how many changes."""

    begin: int
    end: int
    moments: int
    changes: int


def spread(pieces: Iterable[ActivityPiece], buckets: int, begin: int, end: int) -> list[Bucket]:
    """Distribute pieces over buckets of equal length between two times; each piece evenly over its time."""
    length = max(end - begin, 1) / buckets
    moments, changes = [0.0] * buckets, [0.0] * buckets
    for start, stop, count, changed in pieces:
        first, last = (start - begin) / length, (stop - begin) / length
        width = last - first
        low, high = max(int(first), 0), min(int(last), buckets - 1)
        for place in range(low, high + 1):
            # A piece of no length is within one bucket.
            share = (min(last, place + 1) - max(first, place)) / width if width > 0 else 1.0
            if share > 0:
                moments[place] += count * share
                changes[place] += changed * share
    return [Bucket(*both) for both in zip(moments, changes, strict=True)]
