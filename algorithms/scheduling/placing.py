"""The placement of a job, checked before it starts: counts may admit a job that has no feasible light tree.

A scheduler calls `place` once for each job that fits by count, and starts the job if it gets a placement. So the
implementation knows, in the order of its answers, the resources of all starts of a decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from algorithms.b_matching.feasibility import Pieces
from algorithms.scheduling.job import Job, PartName


@dataclass(frozen=True, slots=True)
class Placement:
    """The permission to start a job, with these splitters instead of the counted ones.

    Parameters
    ----------
    pieces : Pieces
        Fan-outs of the splitters.
    """

    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No tree of free resources on the switch is feasible: retry when the switch gains resources.

    Parameters
    ----------
    tenant_stops : bool, optional
        True if a tree would be feasible if the tenant might hold more splitters.
    """

    tenant_stops: bool = False


@dataclass(frozen=True, slots=True)
class PlacementTerms:
    """The terms of a placement of a job that fits a switch by count.

    Parameters
    ----------
    switch : str
        Name of the optical switch.
    pieces : Pieces
        Fan-outs of the counted splitters.
    max_splitters : float
        Maximum number of splitters that may serve it, the counted ones or others; infinite: no limit.
    only : bool
        True if only the counted splitters may serve it, because resources are held for another job.
    """

    switch: str
    pieces: Pieces
    max_splitters: float
    only: bool


class Placing(Protocol):
    """The interface of a component that knows the individual pieces."""

    def place(self, job: Job, terms: PlacementTerms) -> Placement | Unplaced:
        """Place a job. The job starts with a returned placement."""

    def has_kept(self, name: PartName) -> bool:
        """Return whether all resources of a part whose lease has ended are still there for it."""

    def keep(self, name: PartName) -> None:
        """Note that the part continues with its resources."""


class ByNumber:
    """A placing for interchangeable pieces: a job that fits by count is placed."""

    def place(self, job: Job, terms: PlacementTerms) -> Placement:
        """Return the counted pieces."""
        return Placement(terms.pieces)

    def has_kept(self, name: PartName) -> bool:
        """Return True: the counts have been checked."""
        return True

    def keep(self, name: PartName) -> None:
        """Do nothing: counts suffice."""
