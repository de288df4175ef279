"""The state machine of a change of a lit reservation: everything new is added before anything old is removed.

adding      devices receive the new state; receivers rely on the old layout
removing    all new state exists; the state of the old layout alone is removed
undoing     some new state could not be set up; the new state is removed

A removing or undoing change is complete when devices have confirmed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from blast_controller.core.light.layout import Layout
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.tables import follow


class ChangePhase(Enum):
    """Where a change stands."""

    ADDING = "adding"
    REMOVING = "removing"
    UNDOING = "undoing"


class ChangeEvent(Enum):
    """Events of the change."""

    ADDED = "added"
    MISSED = "missed"


_P, _E = ChangePhase, ChangeEvent

TRANSITIONS: dict[tuple[ChangePhase, ChangeEvent], ChangePhase] = {
    (_P.ADDING, _E.ADDED): _P.REMOVING,
    (_P.ADDING, _E.MISSED): _P.UNDOING,
}


@dataclass(slots=True)
class Change:
    """A change under way from the reservation's layout to `target`; `request` is what the client will then have.

    `refusal` is why it is being undone.
    """

    target: Layout
    request: MulticastRequest
    extra_lease: float
    phase: ChangePhase = ChangePhase.ADDING
    refusal: str | None = None

    def added(self) -> None:
        """Note that everything new exists. Raises ImpossibleTransitionError."""
        self._take(_E.ADDED)

    def missed(self, reason: str) -> None:
        """Note that something new failed. Raises ImpossibleTransitionError."""
        self._take(_E.MISSED)
        self.refusal = reason

    def _take(self, event: ChangeEvent) -> None:
        self.phase = follow("change", TRANSITIONS, self.phase, event)
