"""What the core holds to be so, in the words of the field: only to look at, and nothing by which to change it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from algorithms.scheduling.job import PartName
from blast_controller.core.auditor import Auditor
from blast_controller.core.explaining.holdings import Holdings
from blast_controller.core.fiber_check import CheckStage, FiberCheck
from blast_controller.core.fibers.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.kinds import Kind
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
class Policy:
    """Who decides about light, and by what."""

    dispatcher: Dispatcher
    agenda: Agenda
    quota: Quota
    warm: WarmTrees


@dataclass(frozen=True, slots=True)
class Checks:
    """What compares devices and fibers with what is wanted."""

    auditor: Auditor
    fibers: FiberCheck
    probes: ProbeCircuits
    late: LateWrites


class View:
    """Facts as they are at the moment of asking: after an event ask the core for its view again.

    Elements, devices and reservations go by their names and numbers.
    """

    def __init__(self, holdings: Holdings, links: Links, timers: Timers, policy: Policy, checks: Checks) -> None:
        self._holdings, self._inventory = holdings, holdings.inventory
        self._links, self._timers, self._policy, self._checks = links, timers, policy, checks

    # --------------------------------------------------------------------------------------------- pieces

    @property
    def elements(self) -> tuple[ElementId, ...]:
        """Every port, splitter, splitter output and static tree of the fabric."""
        return tuple(self._inventory.elements)

    @property
    def holders(self) -> Mapping[ElementId, int]:
        """The number of the reservation that holds each element; PROBER where a check of the fibers does."""
        return self._inventory.holders

    def late_circuits(self, switch: SwitchId) -> Set[CrossConnect]:
        """What was ours and may still come to be on a switch, although nobody may want it."""
        return self._checks.late.circuits(switch)

    @property
    def group_addresses(self) -> Set[str]:
        """The group addresses that are in use."""
        return self._holdings.reservations.addresses.used

    @property
    def quarantined(self) -> Mapping[ElementId, str]:
        """The elements that nobody may use, and why."""
        return self._inventory.quarantined

    @property
    def occupied(self) -> Mapping[SwitchId, Mapping[ElementId, str]]:
        """By optical switch, the elements that somebody else's cross-connects touch, and by which."""
        occupied = self._inventory.occupied.items()
        return MappingProxyType({switch: MappingProxyType(found) for switch, found in occupied})

    def unusable(self, element: ElementId) -> str | None:
        """Why nobody can use an element: it is quarantined or occupied. None if neither."""
        return self._inventory.unusable(element)

    @property
    def away(self) -> Mapping[Device, str]:
        """The devices that are not there, and why."""
        return self._inventory.away

    @property
    def without_link(self) -> Mapping[LinkId, float]:
        """The ports that have lost their link, and since when."""
        return self._links.down_since

    # ------------------------------------------------------------------------------ parts and their light

    def reservation(self, number: int) -> Reservation | None:
        """The live reservation with this number."""
        return self._holdings.reservations.live.get(number)

    @property
    def waiting(self) -> tuple[tuple[RequestKey, int], ...]:
        """The parts that wait for light, each by its request and index, in the order in which they came to wait."""
        return tuple(self._holdings.table.pending)

    @property
    def kept_free_for(self) -> PartName | None:
        """The part that has waited too long, by request and slot: everything that it needs is kept free for it."""
        return self._policy.dispatcher.kept_free_for

    @property
    def tried(self) -> int:
        """How often the last decision has looked for light for a part."""
        return self._policy.dispatcher.tried

    @property
    def leases_over(self) -> frozenset[PartName]:
        """The parts whose lease is over and that compete anew at the next decision, by request and slot."""
        return self._policy.agenda.leases_over

    def light_used(self, tenant: str, now: float) -> float:
        """Seconds of light that a tenant has had within the last hour."""
        return self._policy.quota.used(tenant, now)

    @property
    def deadlines(self) -> int:
        """How many moments are remembered at which something is to be looked at."""
        return len(self._timers)

    # ------------------------------------------------------------------------------------- what is kept lit

    @property
    def kept_warm(self) -> int:
        """How many trees are kept lit for whoever asks for their group again."""
        return len(self._policy.warm)

    @property
    def trusted(self) -> frozenset[int]:
        """Of the trees that are kept lit, those whose group is trusted to come back before others need its pieces."""
        return self._policy.warm.trusted

    @property
    def alone_since(self) -> float:
        """Since when one group has had the fabric to itself."""
        return self._policy.warm.alone_since

    @property
    def warm_counts(self) -> WarmCounts:
        """How often light was given and found lit, and trees gave way or were taken over, since the start."""
        return self._policy.warm.counts

    @property
    def idle(self) -> Mapping[Kind, int]:
        """How many pieces of each kind are in service and used by no transfer."""
        return MappingProxyType(self._inventory.idle.counts)

    @property
    def dark(self) -> Mapping[Kind, int]:
        """How many of the idle pieces of each kind are dark, or about to be."""
        return MappingProxyType(self._inventory.dark.counts)

    @property
    def reserves(self) -> tuple[DarkReserve, ...]:
        """The idle pieces, and the reserve that is to be dark of them, summed up for people."""
        return self._policy.warm.reserves

    # ---------------------------------------------------------------------------------------------- checks

    @property
    def is_auditing(self) -> bool:
        """Whether devices are being read and compared with what is wanted."""
        return self._checks.auditor.busy

    @property
    def is_checking_fibers(self) -> bool:
        """Whether a check of the fibers runs."""
        return self._checks.fibers.busy

    @property
    def fiber_check(self) -> CheckStage | None:
        """The switch that a check of the fibers is at; None between two switches, and while no check runs."""
        return self._checks.fibers.stage

    @property
    def probe_circuits(self) -> Mapping[SwitchId, frozenset[CrossConnect]]:
        """What a check of the fibers, maybe one of an earlier run, may have on each switch."""
        return MappingProxyType(self._checks.probes.present)
