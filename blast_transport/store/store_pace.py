"""How a node's store does, as nodes that pass data on tell each other."""

from __future__ import annotations

from enum import IntEnum


class StorePace(IntEnum):
    """How a node's store does."""

    KEEPS_UP = 0
    BEHIND = 1
    """Something waits for it."""
    SLOW = 2
    """It takes less than half of what comes, and there is little room left for what waits."""
    ALONE = 3
    """It is slow, and that of some node behind keeps up with the same."""
