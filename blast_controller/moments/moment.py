"""One moment: what was published, when, and what had changed."""

from __future__ import annotations

from typing import NamedTuple

from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot


class Moment(NamedTuple):
    """A snapshot; when it was published, as seconds on the core's clock and since 1970; and what differs in it from
    the moment before.

    Every time within the snapshot is on the core's clock: the difference of the two says when that was.
    """

    snapshot: Snapshot
    now: float
    wall: float
    changes: Changes
