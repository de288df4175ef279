"""One moment: a published snapshot, its time, and its changes."""

from __future__ import annotations

from typing import NamedTuple

from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot


class Moment(NamedTuple):
    """A published snapshot with its time and its differences from the previous moment.

    `now` and `wall` are the publication time in seconds, on the core's clock and since 1970. Every time within the
    snapshot is on the core's clock: the difference of the two converts it.
    """

    snapshot: Snapshot
    now: float
    wall: float
    changes: Changes
