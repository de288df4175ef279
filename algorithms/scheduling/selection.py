"""The decisions of the scheduler, for a controller to carry out."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.b_matching.feasibility import Pieces
from algorithms.scheduling.job import Job, PartName


@dataclass(frozen=True, slots=True)
class Start:
    """A part starts on a switch with these splitters, or continues (`job.continues`: without a set-up).

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
    """The result of an event: parts that start or continue, in the order of decision, and the part that is paused."""

    starts: tuple[Start, ...] = ()
    paused: PartName | None = None


class PartStateError(Exception):
    """The caller made a mistake: the event does not match the scheduler's state of the part."""
