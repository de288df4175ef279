"""A reservation: what devices hold, or are being told to hold, for one part of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from blast_controller.core import reservation_states
from blast_controller.core.identifiers import Device, ElementId, LinkId, is_splitter
from blast_controller.core.layout import NOTHING, Holding, Layout, Step, both
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

    `step` numbers the steps given to devices, `begun` is the number of the one that all of them were given last, and
    `asked` that of the one each has to answer; `share` is what each was last asked to do, `waiting` are those that have
    not answered yet, and `failed` those that could not do it; `links` are those of its leaves that are still to come
    up; `dark` are switch outputs at which no light was seen,
    and `alarms` those of leaves that went dark while something else was being changed; `handed_over` are elements that
    another reservation holds already, while devices are still told to take this one's circuits off them. It was
    `left_behind` if it served nobody when it was released, and is `unlit` while a leaf of it is known to be dark.
    """

    id: int
    request: RequestKey
    part: int
    group_address: str
    layout: Layout
    state: ReservationState = ReservationState.CONFIGURING
    change: Change | None = None
    step: int = 0
    begun: int = 0
    asked: dict[Device, int] = field(default_factory=dict)
    share: dict[Device, Step] = field(default_factory=dict)
    waiting: set[Device] = field(default_factory=set)
    links: set[LinkId] = field(default_factory=set)
    failed: dict[Device, str] = field(default_factory=dict)
    dark: set[int] = field(default_factory=set)
    alarms: set[int] = field(default_factory=set)
    elapsed: dict[Device, float] = field(default_factory=dict)
    compute: float | None = None
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
        shares = [self.share[device].only(device) for device in self.failed]
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
        return bool(self.waiting or self.links or self.failed)

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

    @property
    def failure(self) -> str | None:
        """Why the latest step failed, as one sentence, or None."""
        return "; ".join(self.failed.values()) or None
