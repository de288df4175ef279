"""Pace of a node's store, as forwarding nodes report it to each other."""

from __future__ import annotations

from enum import IntEnum


class StorePace(IntEnum):
    """Pace of a node's store."""

    KEEPS_UP = 0
    BEHIND = 1
    """Data waits for it."""
    SLOW = 2
    """It accepts less than half of the data that arrives, and its queue is nearly full."""
    ALONE = 3
    """It is slow, and that of some node behind keeps up with the same."""
