"""Where a job's light would go, asked before it starts: the scheduler counts, and what counts alone admit may not do.

A scheduler asks once for each job that fits by its numbers, and starts it there if it gets a placement. Whoever is
asked therefore knows, in the order of the answers, what the starts of this decision take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from algorithms.b_matching.feasibility import Pieces
from algorithms.scheduling.job import Job, PartName


@dataclass(frozen=True, slots=True)
class Placement:
    """The job starts, with these splitters instead of those that were counted for it."""

    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Unplaced:
    """None of what is free on the switch will do: ask again when it gains something.

    `tenant_stops`: it would, if the tenant might hold more splitters.
    """

    tenant_stops: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """A job fits this switch with `pieces`. With at most `most` splitters others may serve it, unless they are
    `only` these, because something is kept free for somebody else."""

    switch: str
    pieces: Pieces
    most: float
    only: bool


class Placing(Protocol):
    """Knows the pieces behind the numbers."""

    def place(self, job: Job, terms: Terms) -> Placement | Unplaced:
        """Find light for a job. A placement is taken: the job starts there."""

    def has_kept(self, name: PartName) -> bool:
        """Whether the light of a part whose lease is over is all still there for it."""

    def keep(self, name: PartName) -> None:
        """The part goes on with the light that it has."""


class ByNumber:
    """Where pieces of a size are all alike: what fits by its numbers is placed."""

    def place(self, job: Job, terms: Terms) -> Placement:
        """With what was counted."""
        return Placement(terms.pieces)

    def has_kept(self, name: PartName) -> bool:
        """The numbers say so."""
        return True

    def keep(self, name: PartName) -> None:
        """It is counted."""
