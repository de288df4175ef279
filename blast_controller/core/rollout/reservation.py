"""A reservation: what devices hold, or are being told to hold, for one part of a request."""

from __future__ import annotations

from dataclasses import dataclass, field

from blast_controller.core.light.layout import NOTHING, Holding, Layout, both
from blast_controller.core.model.identifiers import ElementId, is_splitter
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.rollout import reservation_states
from blast_controller.core.rollout.change import Change, ChangePhase
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState
from blast_controller.core.rollout.rollout import Rollout


@dataclass(slots=True)
class Reservation:
    """Ports, splitters, cross-connects, forwards and a group address, held together.

    How devices are brought to that is its `rollout`. `handed_over` are elements that another reservation holds already,
    while devices are still told to take this one's circuits off them. It was `left_behind` if it served nobody when it
    was released, and is `unlit` while a leaf of it is known to be dark.
    """

    id: int
    request: RequestKey
    part: int
    group_address: str
    layout: Layout
    state: ReservationState = ReservationState.CONFIGURING
    change: Change | None = None
    rollout: Rollout = field(default_factory=Rollout)
    handed_over: set[ElementId] = field(default_factory=set)
    left_behind: bool = False
    unlit: bool = False

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
    def wanted(self) -> Holding:
        """What devices are to hold once they have done the current step."""
        if self.state is ReservationState.RELEASING:
            return NOTHING
        if self.change is not None and self.change.phase is ChangePhase.ADDING:
            return both(self.layout.holding, self.change.target.holding)
        return self.in_force.holding

    @property
    def adding(self) -> bool:
        """Whether the current step leads light to new leaves."""
        match self.state:
            case ReservationState.CONFIGURING:
                return True
            case ReservationState.CHANGING:
                return self.change is not None and self.change.phase is ChangePhase.ADDING
            case _:
                return False

    @property
    def present(self) -> Holding:
        """What devices hold after the current step; what one has failed to give back of the layout is missing."""
        shares = [target.share for target in self.rollout.failures]
        lost = {c for share in shares for c in share.connect} & set(self.layout.circuits)
        unwritten = {datapath: set(found) for share in shares for datapath, found in share.add.items()}
        old = {(datapath, f.key) for datapath, found in self.layout.forwards.items() for f in found}
        wanted = self.wanted
        return Holding(
            tuple(c for c in wanted.circuits if c not in lost),
            {
                datapath: tuple(
                    f for f in found if f not in unwritten.get(datapath, ()) or (datapath, f.key) not in old
                )
                for datapath, found in wanted.forwards.items()
            },
        )

    @property
    def at_work(self) -> bool:
        """Whether a device still has to do something for it."""
        return self.rollout.at_work

    @property
    def busy(self) -> bool:
        """Whether it is anything but lit and at rest."""
        return self.state is not ReservationState.LIT or self.at_work

    @property
    def elements(self) -> set[ElementId]:
        """Every element that the reservation holds."""
        return {element for layout in self.layouts for element in layout.elements} - self.handed_over

    @property
    def splitters(self) -> int:
        """How many splitters it holds for its tenant; what serves nobody any longer is anybody's."""
        if self.left_behind or self.state is ReservationState.IDLE:
            return 0
        return sum(is_splitter(element) for element in self.elements)
