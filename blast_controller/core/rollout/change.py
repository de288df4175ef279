"""A change of a lit reservation, as a table: everything new is added before anything old is taken away.

adding      devices are told what is new; receivers rely on the old layout
removing    all that is new is there; what only the old layout had is taken away
undoing     something new could not be had; it is taken away again

A change that is removing or undoing is over when devices have confirmed that.
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
    """What can happen to it."""

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
        """All that is new is there. Raises ImpossibleTransition."""
        self._take(_E.ADDED)

    def missed(self, reason: str) -> None:
        """Something new could not be had. Raises ImpossibleTransition."""
        self._take(_E.MISSED)
        self.refusal = reason

    def _take(self, event: ChangeEvent) -> None:
        self.phase = follow("change", TRANSITIONS, self.phase, event)
