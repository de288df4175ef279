"""A reservation: what devices hold, or are being told to hold, for one part of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from blast_controller.core import reservation_states
from blast_controller.core.events import Device
from blast_controller.core.layout import Layout, Step
from blast_controller.core.requests import MulticastRequest, RequestKey
from blast_controller.core.reservation_states import ReservationEvent, ReservationState


class ChangePhase(Enum):
    """Where a change stands: everything new is added before anything old is taken away."""

    ADDING = "adding"
    REMOVING = "removing"
    UNDOING = "undoing"


@dataclass(slots=True)
class Change:
    """A change under way from the reservation's layout to `target`; `request` is what the client will then have."""

    target: Layout
    request: MulticastRequest
    extra_lease: float
    phase: ChangePhase = ChangePhase.ADDING
    refusal: str | None = None


@dataclass(slots=True)
class Reservation:
    """Ports, splitters, cross-connects, forwards and a group address, held together.

    `step` numbers the steps given to devices, `waiting` are the devices that have not answered the latest one, and
    `failed` those that could not do it. `returned` are ToRs that came back during a change and whose rules are to be
    set once more when it is over.
    """

    id: int
    request: RequestKey
    part: int
    group_address: str
    layout: Layout
    state: ReservationState = ReservationState.CONFIGURING
    change: Change | None = None
    step: int = 0
    current_step: Step | None = None
    waiting: set[Device] = field(default_factory=set)
    failed: dict[Device, str] = field(default_factory=dict)
    returned: set[int] = field(default_factory=set)
    elapsed: dict[Device, float] = field(default_factory=dict)
    compute: float | None = None

    def take(self, event: ReservationEvent) -> None:
        """Go where the table says. Raises ImpossibleTransition."""
        self.state = reservation_states.after(self.state, event)

    @property
    def layouts(self) -> list[Layout]:
        """Every layout that devices may hold something of."""
        return [self.layout, *([self.change.target] if self.change else [])]

    @property
    def in_force(self) -> Layout:
        """The layout that receivers rely on: the old one until all of the new one is there."""
        if self.change is not None and self.change.phase is ChangePhase.REMOVING:
            return self.change.target
        return self.layout

    @property
    def busy(self) -> bool:
        """Whether a device still has to do something for it."""
        return self.state is not ReservationState.LIT or bool(self.waiting or self.failed)

    @property
    def elements(self) -> set[str]:
        """Every element that the reservation holds."""
        return {element for layout in self.layouts for element in layout.elements}

    @property
    def failure(self) -> str | None:
        """Why the latest step failed, as one sentence, or None."""
        return "; ".join(self.failed.values()) or None
