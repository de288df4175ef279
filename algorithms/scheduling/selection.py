"""What the scheduler decides, in words that a controller can carry out."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.b_matching.feasibility import Pieces
from algorithms.scheduling.job import Job, PartName


@dataclass(frozen=True, slots=True)
class Start:
    """A part gets light, or keeps it (`job.continues`: without a set-up), on a switch, with these splitters.

    `seconds` of data may be sent until the lease ends; `last` if the job is then expected to be done. Receivers that
    are not served yet become `rest`, a new part that waits.
    """

    job: Job
    switch: str
    pieces: Pieces
    seconds: float
    last: bool
    rest: Job | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """What an event leads to: parts that get or keep light, in the order decided, and the part that loses its light."""

    starts: tuple[Start, ...] = ()
    paused: PartName | None = None


class WrongPart(Exception):
    """The caller's mistake: the event does not suit what this scheduler knows of the part."""
