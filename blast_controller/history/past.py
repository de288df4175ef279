"""The past as read from a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from blast_controller.history.encoder import Rows


class Instant(NamedTuple):
    """A moment by its number, which alone defines the order, and its wall time in seconds since 1970."""

    sequence: int
    wall: float


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A continuous recording from `began` to `seen` (wall times) by one controller.

    `first` is the number of its first moment; `reason` is why it began.
    """

    number: int
    first: int
    began: float
    seen: float
    epoch: int
    release: str
    instance: str
    reason: str


class Gap(NamedTuple):
    """Nothing was recorded between two wall times, until a run began for this reason; or (None) nothing since then."""

    after: float
    until: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class RecordedSpan:
    """The oldest and the newest moment that can be shown, and the runs, oldest first."""

    oldest: Instant
    newest: Instant
    runs: tuple[RecordedRun, ...]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return the gaps between the runs."""
        pairs = zip(self.runs, self.runs[1:], strict=False)
        return tuple(Gap(before.seen, after.began, after.reason) for before, after in pairs)


@dataclass(frozen=True, slots=True)
class Past:
    """All rows displayed at a moment: `now` is on the core's clock, `wall` in seconds since 1970.

    The rows are read-only.
    """

    sequence: int
    now: float
    wall: float
    run: RecordedRun
    rows: Rows
    gap: Gap | None = None
    """Where what is asked for lies in a gap: then this is what was shown before it."""


class Bucket(NamedTuple):
    """The activity in a period: moments, and rows that changed in them."""

    moments: float
    changes: float
