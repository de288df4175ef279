"""The decisions of the scheduler, for a controller to carry out."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.b_matching.feasibility import Pieces
from algorithms.scheduling.job import Job, PartName


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a part on a switch, or its continuation without a set-up (`job.continues`).

    Parameters
    ----------
    job : Job
        The part.
    switch : str
        Name of the optical switch.
    pieces : Pieces
        Fan-outs of the splitters.
    seconds : float
        Seconds of data at line rate that may be sent until the lease ends.
    last : bool
        True if the job is then expected to be done.
    rest : Job, optional
        A new part that waits, with the receivers that are not served yet.
    """

    job: Job
    switch: str
    pieces: Pieces
    seconds: float
    last: bool
    rest: Job | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of an event.

    Parameters
    ----------
    starts : tuple of Start, optional
        Parts that start or continue, in the order of decision.
    paused : PartName, optional
        The part that is paused.
    """

    starts: tuple[Start, ...] = ()
    paused: PartName | None = None


class PartStateError(Exception):
    """The caller made a mistake: the event does not match the scheduler's state of the part."""
