"""When the pieces of the fabric will be free, if every lease ends when it would end as things stand."""

from __future__ import annotations

import math

from blast_controller.core.explaining.holdings import Holdings
from blast_controller.core.inventory.custody import PROBER
from blast_controller.core.model.fabric import OpticalPort, Splitter, StaticTree
from blast_controller.core.model.identifiers import ElementId, static_element
from blast_controller.core.model.lease_terms import lease_of
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState

NEVER = math.inf
"""The moment of what nobody can foresee: a device has to come back, or an operator to do something."""


class Availability:
    """Foresees moments, on the core's clock: `now` for what is free, a later one for what somebody holds.

    The time that devices need to give something back counts as none. Changes nothing.
    """

    def __init__(self, holdings: Holdings, orders: StandingOrders, now: float) -> None:
        self.now = now
        self._holdings, self._orders = holdings, orders
        self._inventory, self._fabric = holdings.inventory, holdings.inventory.fabric
        self._ends: dict[int, float] = {}

    def is_absent(self, rack: str) -> bool:
        """Whether a rack's ToR is away."""
        return self._fabric.datapath_of(rack) in self._inventory.away

    @property
    def has_address(self) -> bool:
        """Whether there is a group address for one more reservation."""
        return len(self._holdings.reservations.live) < self._orders.settings.group_network.num_addresses - 2

    def port(self, port: OpticalPort) -> float:
        """When a rack's optical port could serve somebody else."""
        absent = port.switch in self._inventory.away or self.is_absent(port.rack)
        return NEVER if absent else self._element(port.element)

    def splitter(self, splitter: Splitter) -> float:
        """When a splitter could serve somebody else."""
        return NEVER if splitter.switch in self._inventory.away else self._element(splitter.element)

    def usable_part(self, splitter: Splitter) -> Splitter:
        """A splitter without the outputs that cannot be used."""
        return splitter.without(lambda output: self._inventory.unusable(output) is not None)

    @property
    def static_trees(self) -> list[tuple[float, StaticTree]]:
        """The static trees that can be used, each with the moment when it could serve somebody else."""
        return [(self._element(static_element(tree.name)), tree) for tree in self._inventory.usable_static()]

    @property
    def free_static(self) -> list[StaticTree]:
        """The static trees that nobody uses."""
        return self._inventory.available_static()

    def end(self, holder: int) -> float:
        """When a holder will have given back what it holds; what is kept warm is given up by whoever asks."""
        if holder not in self._ends:
            self._ends[holder] = self._end(holder)
        return self._ends[holder]

    def _element(self, element: ElementId) -> float:
        if self._inventory.unusable(element) is not None:
            return NEVER
        holder = self._inventory.holders.get(element)
        return self.now if holder is None else self.end(holder)

    def _end(self, holder: int) -> float:
        if holder == PROBER:
            return NEVER
        reservation = self._holdings.reservations.live[holder]
        if reservation.state is ReservationState.IDLE:
            return self.now
        if any(device in self._inventory.away for layout in reservation.layouts for device in layout.holding.devices):
            # A device that is away keeps what it holds, so that nobody else can have it.
            return NEVER
        at_once = math.nextafter(self.now, math.inf)
        return (
            at_once if reservation.state is ReservationState.RELEASING else max(at_once, self._lease_end(reservation))
        )

    def _lease_end(self, reservation: Reservation) -> float:
        request, part = self._holdings.table.part_of(reservation)
        if part.state is PartState.ACTIVE and part.lease_end is not None:
            return part.lease_end
        return self.now + lease_of(request.current, part, self._fabric, self._orders.settings)
