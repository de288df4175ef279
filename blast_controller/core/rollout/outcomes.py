"""Outcomes of a reservation's steps when every device has answered: data for the core."""

from __future__ import annotations

from dataclasses import dataclass

from blast_controller.core.light.light_tree import Leaf, LightTree
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.reservation import Reservation


@dataclass(frozen=True, slots=True)
class Lit:
    """Every device has confirmed: the grant may go out."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class SetupFailed:
    """A device could not do its share; the reservation is being released."""

    reservation: Reservation
    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A change is in force; `fresh` are the leaves that it has lit."""

    reservation: Reservation
    change: Change
    fresh: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class ChangeRefused:
    """A device could not do its share of a change; the old state is in force, with these leaves dark as before."""

    reservation: Reservation
    reason: str
    still_dark: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Released:
    """Everything is undone and its resources are free."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class LightLost:
    """A device lost its share of a lit reservation and cannot do it again."""

    reservation: Reservation
    reason: str


@dataclass(frozen=True, slots=True)
class WarmTreeFailed:
    """A warm tree became faulty; it is being released."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class LeavesDark:
    """Everything was done, but some leaves of `tree` see no light: those at the switch outputs `outputs`."""

    reservation: Reservation
    tree: LightTree
    outputs: frozenset[int]


@dataclass(frozen=True, slots=True)
class ReleaseFailed:
    """An undoing step failed and must be tried again: nothing is free before devices confirm."""

    reservation: Reservation


Outcome = (
    Lit | SetupFailed | Changed | ChangeRefused | Released | LightLost | WarmTreeFailed | LeavesDark | ReleaseFailed
)
