"""The life of a reservation (the device state of one part), as a table. Only a released one holds no resources.

configuring devices are at work
lit         in use
changing    members are being added or removed; the old tree stays valid until all is confirmed
idle        circuits kept for the next iteration of the same group
releasing   being undone; a device that is away keeps it here
"""

from __future__ import annotations

from enum import Enum

from blast_controller.core.model.tables import follow


class ReservationState(Enum):
    """States of a reservation."""

    CONFIGURING = "configuring"
    LIT = "lit"
    CHANGING = "changing"
    IDLE = "idle"
    RELEASING = "releasing"
    RELEASED = "released"


class ReservationEvent(Enum):
    """Events of a reservation's state machine."""

    CONFIRMED = "confirmed"
    FAILURE = "failure"
    PART_ENDED = "part ended"
    CHANGE_REQUESTED = "change requested"
    KEPT = "kept"
    ASKED_AGAIN = "asked again"
    NEEDED = "needed"


_S, _E = ReservationState, ReservationEvent

TRANSITIONS: dict[tuple[ReservationState, ReservationEvent], ReservationState] = {
    (_S.CONFIGURING, _E.CONFIRMED): _S.LIT,
    (_S.CONFIGURING, _E.FAILURE): _S.RELEASING,
    (_S.CONFIGURING, _E.PART_ENDED): _S.RELEASING,
    (_S.LIT, _E.CHANGE_REQUESTED): _S.CHANGING,
    (_S.LIT, _E.FAILURE): _S.RELEASING,
    (_S.LIT, _E.PART_ENDED): _S.RELEASING,
    (_S.LIT, _E.KEPT): _S.IDLE,
    (_S.CHANGING, _E.CONFIRMED): _S.LIT,
    (_S.CHANGING, _E.FAILURE): _S.LIT,
    (_S.CHANGING, _E.PART_ENDED): _S.RELEASING,
    (_S.IDLE, _E.ASKED_AGAIN): _S.LIT,
    (_S.IDLE, _E.NEEDED): _S.RELEASING,
    (_S.IDLE, _E.FAILURE): _S.RELEASING,
    (_S.RELEASING, _E.CONFIRMED): _S.RELEASED,
}


def after(state: ReservationState, event: ReservationEvent) -> ReservationState:
    """Return the state that follows. Raises ImpossibleTransitionError for a pair that is not in the table."""
    return follow("reservation", TRANSITIONS, state, event)
