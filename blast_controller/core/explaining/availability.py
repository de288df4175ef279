"""When the pieces of the fabric will be free, if every lease ends when it would end as things stand."""

from __future__ import annotations

import math

from blast_controller.core.explaining.holdings import HeldResources
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.fabric import OpticalPort, Splitter, StaticTree
from blast_controller.core.model.identifiers import ElementId, static_element
from blast_controller.core.model.lease_terms import lease_of
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState

NEVER = math.inf
"""The time of an event that is not predictable, such as the reconnection of a device or an operator's action."""


class Availability:
    """Predictions of when resources become free, on the core's clock: `now` for free ones.

    The time that devices need for a release counts as zero. Changes nothing.
    """

    def __init__(self, holdings: HeldResources, orders: StandingOrders, now: float) -> None:
        self.now = now
        self._holdings, self._orders = holdings, orders
        self._inventory, self._fabric = holdings.inventory, holdings.inventory.fabric
        self._ends: dict[int, float] = {}

    def is_absent(self, rack: str) -> bool:
        """Return true if a rack's ToR is disconnected."""
        return self._fabric.datapath_of(rack) in self._inventory.away

    @property
    def has_address(self) -> bool:
        """Return true if a group address is free."""
        return len(self._holdings.reservations.live) < self._orders.settings.group_network.num_addresses - 2

    def port(self, port: OpticalPort) -> float:
        """Return the time at which an optical port becomes available."""
        absent = port.switch in self._inventory.away or self.is_absent(port.rack)
        return NEVER if absent else self._element(port.element)

    def splitter(self, splitter: Splitter) -> float:
        """Return the time at which a splitter becomes available."""
        return NEVER if splitter.switch in self._inventory.away else self._element(splitter.element)

    def usable_part(self, splitter: Splitter) -> Splitter:
        """Return a splitter without the outputs that cannot be used."""
        return splitter.without(lambda output: self._inventory.unusable(output) is not None)

    @property
    def static_trees(self) -> list[tuple[float, StaticTree]]:
        """Return the usable static trees, each with the time at which it becomes available."""
        return [(self._element(static_element(tree.name)), tree) for tree in self._inventory.usable_static()]

    @property
    def free_static(self) -> list[StaticTree]:
        """Return the free static trees."""
        return self._inventory.available_static()

    def end(self, holder: int) -> float:
        """Return the time at which a holder will have released its elements; a warm tree is evicted on demand."""
        if holder not in self._ends:
            self._ends[holder] = self._end(holder)
        return self._ends[holder]

    def _element(self, element: ElementId) -> float:
        if self._inventory.unusable(element) is not None:
            return NEVER
        holder = self._inventory.holders.get(element)
        if holder is None:
            return self.now
        # An element that was handed over returns to the reservation that has not yet been released everywhere.
        lenders = [r.id for r in self._holdings.reservations.releasing.values() if element in r.handed_over]
        return max(map(self.end, (holder, *lenders)))

    def _end(self, holder: int) -> float:
        if holder == PROBER:
            return NEVER
        reservation = self._holdings.reservations.live[holder]
        if reservation.state is ReservationState.IDLE:
            return self.now
        if any(
            device in self._inventory.away for layout in reservation.layouts for device in layout.device_state.devices
        ):
            # A disconnected device keeps its circuits, so nothing else can use them.
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
