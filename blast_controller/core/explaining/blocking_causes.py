"""Causes that block a pending part: racks, splitters, limits of tenants and devices, with their holders.

A tenant sees holders of other tenants only as "another tenant", without name or number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from blast_controller.core.explaining.availability import NEVER
from blast_controller.core.explaining.holdings import HeldResources
from blast_controller.core.explaining.prospect import Prospect, SwitchProspect
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.identifiers import Device, ElementId, SwitchId, device_name, static_element
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.wording import are, listed, moment
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState


@dataclass(frozen=True, slots=True)
class BlockingCause:
    """A missing resource: the wait in a few words, and a list of all blockers."""

    cause: str
    blockers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BlockingQuestion:
    """A query for an explanation: the request, the client's tenant `viewer` (None: an operator), and the time."""

    request: RequestKey
    viewer: str | None
    now: float


class BlockingCauses:
    """Finds the causes that block a request and describes them to a viewer."""

    def __init__(self, holdings: HeldResources, orders: StandingOrders, question: BlockingQuestion) -> None:
        self._holdings, self._orders, self._question, self._now = holdings, orders, question, question.now
        self._inventory, self._fabric = holdings.inventory, holdings.inventory.fabric
        self._holders: dict[int, str | None] = {}

    def of(self, prospect: Prospect) -> Iterator[BlockingCause]:
        """Yield all causes that block a part now."""
        for rack in prospect.absent:
            reason = self._inventory.away[self._fabric.datapath_of(rack)]
            yield _single(f"for the ToR of {rack}", f"the ToR of {rack} is disconnected ({reason})")
        if not prospect.has_address:
            network = self._orders.settings.group_network
            yield _single("for a group address", f"every group address of {network} is in use")
        if prospect.others:
            yield from self._of_light(prospect)

    def _of_light(self, prospect: Prospect) -> Iterator[BlockingCause]:
        if prospect.light_used_up:
            tenant = prospect.request.tenant
            spent = f"the tenant {tenant} has used its quota of lit time for this hour"
            yield _single(f"because {spent}", spent)
        if any(free <= self._now for free, _ in prospect.static_trees):
            return
        offer = prospect.offers[0] if prospect.offers else None
        hopeless = offer is None or prospect.start_on(offer) == NEVER
        if prospect.static_trees and hopeless:
            yield self._static(prospect)
        elif offer is not None:
            yield from self._on_switch(prospect, offer)

    def _static(self, prospect: Prospect) -> BlockingCause:
        names = [tree.name for _, tree in prospect.static_trees]
        lines = self._lines((static_element(name), f"the static tree {name}") for name in names)
        return BlockingCause(f"for the static tree {' or '.join(names)}", tuple(lines))

    def _on_switch(self, prospect: Prospect, offer: SwitchProspect) -> Iterator[BlockingCause]:
        if offer.switch in self._inventory.away:
            text = f"the optical switch {offer.switch}"
            yield _single(f"for {text}", f"{text} is disconnected ({self._inventory.away[offer.switch]})")
            return
        # `of` reports disconnected ToRs already.
        blocked = [rack for rack in prospect.without_port(offer) if not prospect.is_absent(rack)]
        if blocked:
            yield self._ports(blocked, offer.switch)
        pool = offer.pool(self._now)
        if not prospect.fits(len(prospect.others), offer.switch, pool, self._now):
            enough = prospect.would_fit(offer.switch, pool)
            yield self._limit(prospect) if enough else self._splitters(prospect, offer)

    def _ports(self, racks: list[str], switch: SwitchId) -> BlockingCause:
        ports = [p for rack in racks for p in self._fabric.racks[rack].optical_ports if p.switch == switch]
        wired = {port.rack for port in ports}
        lines = [*self._lines((port.element, port.element) for port in ports)]
        lines += [f"{rack} has no optical port on {switch}" for rack in racks if rack not in wired]
        return BlockingCause(f"for a free optical port of {listed(racks)}", tuple(lines))

    def _splitters(self, prospect: Prospect, offer: SwitchProspect) -> BlockingCause:
        splitters = self._fabric.splitters_on(offer.switch)
        lines = self._lines((s.element, f"{s.element} (1:{s.fan_out})") for s in splitters)
        text = f"for free splitters that make {prospect.leaves(len(prospect.others))} leaves on {offer.switch}"
        return BlockingCause(text, tuple(lines) or (f"{offer.switch} has too few splitters",))

    def _limit(self, prospect: Prospect) -> BlockingCause:
        tenant, live = prospect.request.tenant, self._holdings.reservations.live
        limit = self._orders.limits(tenant).max_splitters
        held = prospect.held_by_tenant.items()
        lines = tuple(f"{listed(names)} {are(names)} {self._held_by(live[number])}" for number, names in held)
        cause = f"because the tenant {tenant} may hold {limit} {'splitter' if limit == 1 else 'splitters'} at a time"
        return BlockingCause(cause, lines)

    # --------------------------------------------------------------------------------------------- holders

    def _lines(self, elements: Iterable[tuple[ElementId, str]]) -> list[str]:
        """Describe the blocker of each unavailable (element, name); equal ones share a line."""
        found = [(trouble, name) for element, name in elements if (trouble := self._trouble(element)) is not None]
        alike = groupby(sorted(found, key=_trouble_of), key=_trouble_of)
        grouped = [(trouble, [name for _, name in pairs]) for trouble, pairs in alike]
        return [f"{listed(names)} {are(names)} {trouble}" for trouble, names in grouped]

    def _trouble(self, element: ElementId) -> str | None:
        if reason := self._inventory.unusable(element):
            return f"not usable: {reason}"
        holder = self._inventory.holders.get(element)
        if holder is None:
            return None
        if holder not in self._holders:
            self._holders[holder] = self._keeps(holder)
        return self._holders[holder]

    def _keeps(self, holder: int) -> str | None:
        """Describe why a holder blocks its elements; None if it releases them on demand."""
        if holder == PROBER:
            return "being probed by `blast fabric verify`"
        reservation = self._holdings.reservations.live[holder]
        return None if reservation.state is ReservationState.IDLE else self._held_by(reservation)

    def _held_by(self, reservation: Reservation) -> str:
        holder_name = self._holder_name(reservation)
        away = [self._device(d) for layout in reservation.layouts for d in layout.device_state.devices]
        missing = listed(sorted({device for device in away if device}))
        until = f", after {missing} reconnects" if missing else ""
        match reservation.state:
            case ReservationState.RELEASING:
                return f"being released by {holder_name}{until}"
            case ReservationState.CONFIGURING:
                return f"being set up for {holder_name}{until}"
            case _:
                _, part = self._holdings.table.part_of(reservation)
                lease = "" if part.lease_end is None else f", whose lease ends {moment(part.lease_end - self._now)}"
                return f"held by {holder_name}{lease}{until}"

    def _device(self, device: Device) -> str | None:
        """Return the name of a device that is away."""
        if device not in self._inventory.away:
            return None
        return device_name(device)

    def _holder_name(self, reservation: Reservation) -> str:
        tenant, key = reservation.request
        if reservation.request == self._question.request:
            return f"part {reservation.part} of this request"
        if self._question.viewer is None:
            return f"{tenant}/{key} (reservation {reservation.id})"
        return f"{key} (reservation {reservation.id})" if tenant == self._question.viewer else "another tenant"


def _single(cause: str, blocker: str) -> BlockingCause:
    return BlockingCause(cause, (blocker,))


def _trouble_of(pair: tuple[str, str]) -> str:
    return pair[0]
