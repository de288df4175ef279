"""Read-only view of the core's state."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from algorithms.scheduling.job import PartName
from blast_controller.core.auditor import Auditor
from blast_controller.core.explaining.holdings import HeldResources
from blast_controller.core.fiber_check import CheckStage, FiberCheck
from blast_controller.core.fibers.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.kinds import PieceKind
from blast_controller.core.inventory.links import Links
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device, ElementId, LinkId, SwitchId
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.model.timers import Timers
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.dark_reserve import DarkReserve
from blast_controller.core.policy.dispatcher import Dispatcher
from blast_controller.core.policy.quota import Quota
from blast_controller.core.policy.warm_trees import WarmCounts, WarmTrees
from blast_controller.core.rollout.late_writes import LateWrites
from blast_controller.core.rollout.reservation import Reservation


@dataclass(frozen=True, slots=True)
class PolicyView:
    """The scheduling policy and its input."""

    dispatcher: Dispatcher
    agenda: Agenda
    quota: Quota
    warm: WarmTrees


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks of devices and fibers."""

    auditor: Auditor
    fibers: FiberCheck
    probes: ProbeCircuits
    late: LateWrites


class View:
    """Facts as they are at the moment of asking: after an event ask the core for its view again.

    Elements, devices and reservations go by their names and numbers.
    """

    def __init__(
        self, holdings: HeldResources, links: Links, timers: Timers, policy: PolicyView, checks: Checks
    ) -> None:
        self._holdings, self._inventory = holdings, holdings.inventory
        self._links, self._timers, self._policy, self._checks = links, timers, policy, checks

    # --------------------------------------------------------------------------------------------- pieces

    @property
    def elements(self) -> tuple[ElementId, ...]:
        """Return every port, splitter, splitter output and static tree of the fabric."""
        return tuple(self._inventory.elements)

    @property
    def holders(self) -> Mapping[ElementId, int]:
        """Return the number of the reservation that holds each element; PROBER where a check of the fibers does."""
        return self._inventory.holders

    def late_circuits(self, switch: SwitchId) -> Set[CrossConnect]:
        """Return unwanted circuits that may still appear on a switch."""
        return self._checks.late.circuits(switch)

    @property
    def group_addresses(self) -> Set[str]:
        """Return the group addresses that are in use."""
        return self._holdings.reservations.addresses.used

    @property
    def quarantined(self) -> Mapping[ElementId, str]:
        """Return the quarantined elements with their reasons."""
        return self._inventory.quarantined

    @property
    def occupied(self) -> Mapping[SwitchId, Mapping[ElementId, CrossConnect]]:
        """Return, by optical switch, the elements that foreign cross-connects touch, with the circuit."""
        occupied = self._inventory.occupied.items()
        return MappingProxyType({switch: MappingProxyType(found) for switch, found in occupied})

    def unusable(self, element: ElementId) -> str | None:
        """Return why an element is unusable (quarantined or occupied), or None."""
        return self._inventory.unusable(element)

    @property
    def away(self) -> Mapping[Device, str]:
        """Return the devices that are not there, and why."""
        return self._inventory.away

    @property
    def without_link(self) -> Mapping[LinkId, float]:
        """Return the ports that have lost their link, and since when."""
        return self._links.down_since

    # ------------------------------------------------------------------------------ parts and grants

    def reservation(self, number: int) -> Reservation | None:
        """Return the live reservation with this number."""
        return self._holdings.reservations.live.get(number)

    @property
    def waiting(self) -> tuple[tuple[RequestKey, int], ...]:
        """Return the pending parts, each by request and index, in the order of their wait."""
        return tuple(self._holdings.table.pending)

    @property
    def kept_free_for(self) -> PartName | None:
        """Return the part that has waited too long, by request and slot.

        Everything that it needs is kept free for it.
        """
        return self._policy.dispatcher.kept_free_for

    @property
    def tried(self) -> int:
        """Return how many placements the last decision tried for a part."""
        return self._policy.dispatcher.tried

    @property
    def leases_over(self) -> frozenset[PartName]:
        """Return the parts with an expired lease that compete again at the next decision, by request and slot."""
        return self._policy.agenda.leases_over

    def light_used(self, tenant: str, now: float) -> float:
        """Return the seconds of light that a tenant has had within the last hour."""
        return self._policy.quota.used(tenant, now)

    @property
    def deadlines(self) -> int:
        """Return the number of scheduled deadlines."""
        return len(self._timers)

    # ------------------------------------------------------------------------------------- what is kept lit

    @property
    def kept_warm(self) -> int:
        """Return the number of warm trees."""
        return len(self._policy.warm)

    @property
    def trusted(self) -> frozenset[int]:
        """Return the warm trees whose group is trusted to return before others need its pieces."""
        return self._policy.warm.trusted

    @property
    def alone_since(self) -> float:
        """Return the time since which one group has had the fabric to itself."""
        return self._policy.warm.alone_since

    @property
    def warm_counts(self) -> WarmCounts:
        """Return the counts since the start: parts served, warm hits, evictions and reclaims."""
        return self._policy.warm.counts

    @property
    def idle(self) -> Mapping[PieceKind, int]:
        """Return the number of idle pieces of each kind in service."""
        return MappingProxyType(self._inventory.idle)

    @property
    def dark(self) -> Mapping[PieceKind, int]:
        """Return how many of the idle pieces of each kind are dark or becoming so."""
        return MappingProxyType(self._inventory.dark)

    @property
    def reserves(self) -> tuple[DarkReserve, ...]:
        """Return the idle pieces, and the reserve that is to be dark of them, summed up for people."""
        return self._policy.warm.reserves

    # ---------------------------------------------------------------------------------------------- checks

    @property
    def is_auditing(self) -> bool:
        """Return true while a reconciliation runs."""
        return self._checks.auditor.busy

    @property
    def is_checking_fibers(self) -> bool:
        """Return true while a fiber check runs."""
        return self._checks.fibers.busy

    @property
    def fiber_check(self) -> CheckStage | None:
        """Return the switch that a check of the fibers is at; None between two switches, and while no check runs."""
        return self._checks.fibers.stage

    @property
    def probe_circuits(self) -> Mapping[SwitchId, frozenset[CrossConnect]]:
        """Return the probe circuits, maybe of an earlier run, that may exist on each switch."""
        return MappingProxyType(self._checks.probes.present)
