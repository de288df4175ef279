"""The life of a part (the receivers of a request that one light tree serves), as a table.

pending     admitted, no light
configuring its reservation is being lit
active      granted
done, withdrawn, expired, failed: final. `rejected` is what a client sees of a request that was never admitted.
"""

from __future__ import annotations

from enum import Enum

from blast_controller.core.model.tables import follow


class PartState(Enum):
    """States of a part."""

    PENDING = "pending"
    CONFIGURING = "configuring"
    ACTIVE = "active"
    DONE = "done"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Return true if the state is final."""
        return self not in (PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE)


class PartEvent(Enum):
    """Events of a part's state machine."""

    PICKED = "picked"
    CONFIRMED = "confirmed"
    FAILURE = "failure"
    GIVEN_UP = "given up"
    WITHDRAWN = "withdrawn"
    PENDING_TIMEOUT_OVER = "pending timeout expired"
    FINISHED = "finished"
    LEASE_END = "lease end"
    LIGHT_LOST = "light lost"
    PAUSED = "paused"


_S, _E = PartState, PartEvent

TRANSITIONS: dict[tuple[PartState, PartEvent], PartState] = {
    (_S.PENDING, _E.GIVEN_UP): _S.FAILED,
    (_S.PENDING, _E.PICKED): _S.CONFIGURING,
    (_S.PENDING, _E.WITHDRAWN): _S.WITHDRAWN,
    (_S.PENDING, _E.PENDING_TIMEOUT_OVER): _S.EXPIRED,
    (_S.CONFIGURING, _E.CONFIRMED): _S.ACTIVE,
    (_S.CONFIGURING, _E.FAILURE): _S.PENDING,
    (_S.CONFIGURING, _E.GIVEN_UP): _S.FAILED,
    (_S.CONFIGURING, _E.WITHDRAWN): _S.WITHDRAWN,
    (_S.CONFIGURING, _E.PENDING_TIMEOUT_OVER): _S.EXPIRED,
    (_S.ACTIVE, _E.FINISHED): _S.DONE,
    (_S.ACTIVE, _E.WITHDRAWN): _S.WITHDRAWN,
    (_S.ACTIVE, _E.LEASE_END): _S.EXPIRED,
    (_S.ACTIVE, _E.LIGHT_LOST): _S.PENDING,
    (_S.ACTIVE, _E.PAUSED): _S.PENDING,
}


def after(state: PartState, event: PartEvent) -> PartState:
    """Return the state that follows. Raises ImpossibleTransitionError for a pair that is not in the table."""
    return follow("part", TRANSITIONS, state, event)
