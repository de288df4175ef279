"""A reservation: the device state for one part of a request, present or being set up."""

from __future__ import annotations

from dataclasses import dataclass, field

from blast_controller.core.light.layout import NOTHING, DeviceState, Layout, both, everything
from blast_controller.core.model.identifiers import ElementId, is_splitter
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.rollout import reservation_states
from blast_controller.core.rollout.change import Change, ChangePhase
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState
from blast_controller.core.rollout.rollout import Rollout


@dataclass(slots=True)
class Reservation:
    """Ports, splitters, cross-connects, forwards and a group address, held together.

    `rollout` brings devices to that state. `handed_over` are elements that another reservation holds already while
    devices still remove this one's circuits. `left_behind` is true if it was idle when it was released; `unlit` is true
    while one of its leaves is known to be dark.
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
        """Apply an event of the state machine. Raises ImpossibleTransitionError."""
        self.state = reservation_states.after(self.state, event)

    @property
    def layouts(self) -> list[Layout]:
        """Return every layout that devices may hold something of."""
        return [self.layout, *([self.change.target] if self.change else [])]

    @property
    def provisioned(self) -> DeviceState:
        """Return everything that devices may hold of it."""
        if self.change is None:
            return self.layout.device_state
        return everything([self.layout.device_state, self.change.target.device_state])

    @property
    def in_force(self) -> Layout:
        """Return the layout that receivers rely on: the old one until the new one is complete."""
        if self.change is not None and self.change.phase is ChangePhase.REMOVING:
            return self.change.target
        return self.layout

    @property
    def intended(self) -> DeviceState:
        """Return the device state after the current step."""
        if self.state is ReservationState.RELEASING:
            return NOTHING
        if self.change is not None and self.change.phase is ChangePhase.ADDING:
            return both(self.layout.device_state, self.change.target.device_state)
        return self.in_force.device_state

    @property
    def adding(self) -> bool:
        """Return true if the current step adds leaves."""
        match self.state:
            case ReservationState.CONFIGURING:
                return True
            case ReservationState.CHANGING:
                return self.change is not None and self.change.phase is ChangePhase.ADDING
            case _:
                return False

    @property
    def present(self) -> DeviceState:
        """Return the state of devices after the current step, without parts of the layout whose release failed."""
        shares = [target.share for target in self.rollout.failures]
        lost = {c for share in shares for c in share.connect} & set(self.layout.circuits)
        unwritten = {datapath: set(found) for share in shares for datapath, found in share.add.items()}
        old = {(datapath, f.key) for datapath, found in self.layout.forwards.items() for f in found}
        intended = self.intended
        return DeviceState(
            tuple(c for c in intended.circuits if c not in lost),
            {
                datapath: tuple(
                    f for f in found if f not in unwritten.get(datapath, ()) or (datapath, f.key) not in old
                )
                for datapath, found in intended.forwards.items()
            },
        )

    @property
    def at_work(self) -> bool:
        """Return true while a device is still working for it."""
        return self.rollout.at_work

    @property
    def busy(self) -> bool:
        """Return true unless it is lit and unchanging."""
        return self.state is not ReservationState.LIT or self.at_work

    @property
    def elements(self) -> frozenset[ElementId]:
        """Return every element that the reservation holds."""
        held = self.layout.elements
        if self.change is not None:
            held |= self.change.target.elements
        return held - self.handed_over if self.handed_over else held

    @property
    def splitters(self) -> int:
        """Return the number of splitters that count for its tenant; idle ones count for none."""
        if self.left_behind or self.state is ReservationState.IDLE:
            return 0
        return sum(is_splitter(element) for element in self.elements)
