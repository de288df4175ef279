"""What the core holds to be so, in the words of the field: only to look at, and nothing by which to change it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType

from algorithms.scheduling.job import PartName
from blast_controller.core.fibre_check import CheckStage, FibreCheck
from blast_controller.core.inventory.kinds import Kind
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device, ElementId, LinkId, SwitchId
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.policy.dark_reserve import DarkReserve, dark_reserves
from blast_controller.core.policy.warm_trees import WarmCounts
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.state import State


class View:
    """Facts as they are at the moment of asking: after an event ask the core for its view again.

    Elements, devices and reservations go by their names and numbers.
    """

    def __init__(self, state: State, fibres: FibreCheck) -> None:
        self._state = state
        self._fibres = fibres

    # --------------------------------------------------------------------------------------------- pieces

    @property
    def elements(self) -> tuple[ElementId, ...]:
        """Every port, splitter, splitter leg and static tree of the fabric."""
        return tuple(self._state.inventory.elements)

    def take_changes(self) -> set[ElementId]:
        """The ports, splitters and static trees of which anything may have changed since this was asked last.

        One watcher at a time may rely on it.
        """
        return self._state.inventory.take_changes()

    @property
    def holders(self) -> Mapping[ElementId, int]:
        """The number of the reservation that holds each element; PROBER where a check of the fibres does."""
        return self._state.inventory.holders

    @property
    def group_addresses(self) -> Set[str]:
        """The group addresses that are in use."""
        return self._state.addresses.used

    @property
    def quarantined(self) -> Mapping[ElementId, str]:
        """The elements that nobody may use, and why."""
        return self._state.inventory.quarantined

    @property
    def occupied(self) -> Mapping[SwitchId, Mapping[ElementId, str]]:
        """By optical switch, the elements that somebody else's cross-connects touch, and by which."""
        occupied = self._state.inventory.occupied.items()
        return MappingProxyType({switch: MappingProxyType(found) for switch, found in occupied})

    def unusable(self, element: ElementId) -> str | None:
        """Why nobody can use an element: it is quarantined or occupied. None if neither."""
        return self._state.inventory.unusable(element)

    @property
    def away(self) -> Mapping[Device, str]:
        """The devices that are not there, and why."""
        return self._state.inventory.away

    @property
    def without_link(self) -> Mapping[LinkId, float]:
        """The ports that have lost their link, and since when."""
        return self._state.links.down_since

    # ------------------------------------------------------------------------------ parts and their light

    def reservation(self, number: int) -> Reservation | None:
        """The live reservation with this number."""
        return self._state.reservations.live.get(number)

    @property
    def waiting(self) -> tuple[tuple[RequestKey, int], ...]:
        """The parts that wait for light, each by its request and index, in the order in which they came to wait."""
        return tuple(self._state.table.pending)

    @property
    def kept_free_for(self) -> PartName | None:
        """The part that has waited too long, by request and slot: everything that it needs is kept free for it."""
        return self._state.dispatcher.kept_free_for

    @property
    def tried(self) -> int:
        """How often the last decision has looked for light for a part."""
        return self._state.dispatcher.tried

    @property
    def leases_over(self) -> frozenset[PartName]:
        """The parts whose lease is over and that compete anew at the next decision, by request and slot."""
        return self._state.next_decision.leases_over

    def light_used(self, tenant: str, now: float) -> float:
        """Seconds of light that a tenant has had within the last hour."""
        return self._state.quota.used(tenant, now)

    @property
    def deadlines(self) -> int:
        """How many moments are remembered at which something is to be looked at."""
        return len(self._state.timers)

    # ------------------------------------------------------------------------------------- what is kept lit

    @property
    def kept_warm(self) -> int:
        """How many trees are kept lit for whoever asks for their group again."""
        return len(self._state.warm)

    @property
    def trusted(self) -> frozenset[int]:
        """Of the trees that are kept lit, those whose group is trusted to come back before others need its pieces."""
        return self._state.warm.trusted

    @property
    def alone_since(self) -> float:
        """Since when one group has had the fabric to itself."""
        return self._state.warm.alone_since

    @property
    def warm_counts(self) -> WarmCounts:
        """How often light was given and found lit, and trees gave way or were taken over, since the start."""
        return self._state.warm.counts

    @property
    def idle(self) -> Mapping[Kind, int]:
        """How many pieces of each kind are in service and used by no transfer."""
        return MappingProxyType(self._state.inventory.idle.counts)

    @property
    def dark(self) -> Mapping[Kind, int]:
        """How many of the idle pieces of each kind are dark, or about to be."""
        return MappingProxyType(self._state.inventory.dark.counts)

    @property
    def reserves(self) -> tuple[DarkReserve, ...]:
        """The idle pieces, and the reserve that is to be dark of them, summed up for people."""
        return tuple(dark_reserves(self._state.inventory, self._state.orders.settings.warm_reserve))

    # ---------------------------------------------------------------------------------------------- checks

    @property
    def is_auditing(self) -> bool:
        """Whether devices are being read and compared with what is wanted."""
        return self._state.auditor.busy

    @property
    def is_checking_fibres(self) -> bool:
        """Whether a check of the fibres runs."""
        return self._fibres.busy

    @property
    def fibre_check(self) -> CheckStage | None:
        """The switch that a check of the fibres is at; None between two switches, and while no check runs."""
        return self._fibres.stage

    @property
    def probe_circuits(self) -> Mapping[SwitchId, frozenset[CrossConnect]]:
        """What a check of the fibres, maybe one of an earlier run, may have on each switch."""
        return MappingProxyType(self._state.probes.present)
