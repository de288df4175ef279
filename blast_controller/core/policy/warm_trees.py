"""Warm trees, kept lit between two requests: an iterative job that requests the same group again finds its tree lit.

The elements of an idle reservation count as free. A group that needs one of them takes it, and the rest is released; a
request for the same group, sender and tenant gets the tree unchanged.

Reclaiming an element costs a disconnect before the connect. Therefore trees are evicted in advance: the share
`warm_reserve` of the idle pieces of each kind stays dark, and the last dark one stays so unless a group needs it that
returns before others need it. A group that had the fabric alone for `keep_warm` may keep more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.kinds import PieceKind
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.model.requests import MulticastRequest, Part
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.timers import Timers, WarmTimeExpired
from blast_controller.core.policy.dark_reserve import DarkReserve, dark_reserves, reserve_of
from blast_controller.core.policy.returning_groups import Group, ReturningGroups
from blast_controller.core.policy.warm_eviction import EvictionOrder
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationEvent
from blast_controller.core.rollout.reservations import Reservations

OVERDUE_FACTOR = 2.0
"""A group is overdue after this multiple of its previous absence."""


@dataclass(frozen=True, slots=True)
class WarmCounts:
    """Counts since the start.

    `lit`: parts served by a switch; `hits`: parts that found their tree warm; `gave_way`: trees evicted; `taken_over`:
    trees with reclaimed elements.
    """

    lit: int = 0
    hits: int = 0
    gave_way: int = 0
    taken_over: int = 0

    def __add__(self, other: WarmCounts) -> WarmCounts:
        return WarmCounts(
            self.lit + other.lit,
            self.hits + other.hits,
            self.gave_way + other.gave_way,
            self.taken_over + other.taken_over,
        )


class WarmTrees:
    """Finds idle reservations by their group, and lets go of them."""

    def __init__(
        self, inventory: Inventory, reservations: Reservations, timers: Timers, orders: StandingOrders
    ) -> None:
        self._orders = orders
        self.counts = WarmCounts()
        self._inventory = inventory
        self._reservations = reservations
        self._timers = timers
        self._groups = ReturningGroups()
        self._order = EvictionOrder()
        self._kept: defaultdict[Group, list[int]] = defaultdict(list)
        self._group_of: dict[int, Group] = {}
        self._until: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    @property
    def trusted(self) -> frozenset[int]:
        """Return the trees whose group is trusted to come back before others need its pieces."""
        return frozenset(filter(self._order.is_trusted, self._until))

    @property
    def alone_since(self) -> float:
        """Return the time since which one group has had the fabric to itself."""
        return self._groups.alone_since

    @property
    def reserves(self) -> tuple[DarkReserve, ...]:
        """Return the idle pieces, and the reserve that is to be dark of them, summed up for people."""
        return tuple(dark_reserves(self._inventory, self._orders.settings.warm_reserve))

    # ------------------------------------------------------------------------------------------- keeping

    def keep(self, reservation: Reservation, request: MulticastRequest, now: float) -> bool:
        """Keep the tree of a finished part if it can serve again; return true if it is kept."""
        tree = reservation.layout.tree
        if not self._orders.settings.keep_warm or reservation.busy or reservation.unlit:
            return False
        if tree is None or isinstance(tree, StaticLight):
            return False
        group, kinds = _group(request, reservation.layout.receivers), self._inventory.kinds_of(reservation.elements)
        away = self._groups.go(group, kinds, now)
        self._reservations.keep(reservation)
        self._remember(reservation.id, group, now)
        self._order.add(reservation.id, kinds, None if away is None else now + OVERDUE_FACTOR * away)
        return True

    def keep_idle(self, reservation: Reservation, request: MulticastRequest, now: float) -> None:
        """Keep a lit tree warm after its part ended or paused, for any group and for the part itself."""
        self._reservations.keep(reservation)
        self._expect(reservation, request, now)

    def adopt(self, reservation: Reservation, request: MulticastRequest | None, now: float) -> None:
        """Adopt an idle reservation of an earlier run; release it if its request is forgotten."""
        if request is None or not self._orders.settings.keep_warm:
            self._reservations.release(reservation, ReservationEvent.NEEDED)
        else:
            group = _group(request, reservation.layout.receivers)
            self._groups.expect(group, self._inventory.kinds_of(reservation.elements), now)
            self._expect(reservation, request, now)

    def _expect(self, reservation: Reservation, request: MulticastRequest, now: float) -> None:
        """Keep a tree for a group whose return time is unknown."""
        until = self._remember(reservation.id, _group(request, reservation.layout.receivers), now)
        self._order.add(reservation.id, self._inventory.kinds_of(reservation.elements), until)

    def _remember(self, number: int, group: Group, now: float) -> float:
        """Keep a tree until the time that is returned, unless its pieces are needed before."""
        until = self._until[number] = now + self._orders.settings.keep_warm
        self._kept[group].append(number)
        self._group_of[number] = group
        self._timers.add(until, WarmTimeExpired(number, until))
        return until

    # ------------------------------------------------------------------------------------------- serving

    def find(self, request: MulticastRequest, part: Part) -> Reservation | None:
        """Return the tree that is kept for exactly these receivers, or None.

        A tree with unfinished device steps, or that is not lit, is not returned.
        """
        numbers = self._kept.get(_group(request, part.receivers), ())
        found = (self._reservations.live[number] for number in numbers)
        return next((kept for kept in found if not (kept.at_work or kept.unlit)), None)

    def light_again(self, reservation: Reservation, request: MulticastRequest, part: Part, now: float) -> None:
        """Let a tree that was found serve this part."""
        self.counts += WarmCounts(lit=1, hits=1)
        self._groups.come(_group(request, part.receivers), True, self._orders.settings.keep_warm, now)
        self._forget(reservation.id)
        self._reservations.ask_again(reservation, request.id, part.index)

    def note_cold_start(self, request: MulticastRequest, part: Part, now: float) -> None:
        """Record that a part is served without a warm tree."""
        self.counts += WarmCounts(lit=1)
        self._groups.come(_group(request, part.receivers), False, self._orders.settings.keep_warm, now)

    # ----------------------------------------------------------------------------------------- letting go

    def hand_over(self, elements: Collection[ElementId]) -> frozenset[int]:
        """Release the trees that hold any of these elements for a new reservation; return their numbers."""
        self._groups.needed.update(self._inventory.kinds_used_up(elements))
        lenders = frozenset(self._inventory.keepers_of(elements))
        self.counts += WarmCounts(taken_over=len(lenders))
        for number in lenders:
            self._forget(number)
            self._reservations.hand_over(self._reservations.live[number], elements)
        return lenders

    def give_way(self, now: float) -> None:
        """Evict trees until the reserve is dark, except on switches that are setting up circuits."""
        for switch in sorted(self._inventory.unsettled):
            if switch not in self._inventory.away and not self._reservations.is_lighting(switch):
                self._give_way_on(switch, now)

    def _give_way_on(self, switch: SwitchId, now: float) -> None:
        unsettled, within = self._inventory.unsettled, self._orders.settings.keep_warm
        alone = within > 0 and self._groups.is_alone(within, now)
        for kind in sorted(unsettled.pop(switch)):
            while (number := self._surplus(kind, alone, now)) is not None:
                self.counts += WarmCounts(gave_way=1)
                self.give_up(number)
            if alone and self._surplus(kind, False, now) is not None:
                # Another group may arrive without a change to this kind.
                unsettled[switch].add(kind)

    def _surplus(self, kind: PieceKind, alone: bool, now: float) -> int | None:
        """Return the tree to evict for pieces of this kind; None if enough are dark or no tree may be evicted."""
        share, dark = self._orders.settings.warm_reserve, self._inventory.dark[kind]
        reserve = reserve_of(self._inventory.idle[kind], share)
        if dark >= max(1, reserve):
            return None
        newcomer = self._order.newcomer(kind)
        if newcomer is not None and share:
            return newcomer
        return self._order.trusted(kind, now) if dark < reserve and not alone else None

    def give_up(self, number: int) -> None:
        """Evict a tree that has a faulty element or was not requested for long."""
        self._forget(number)
        self._reservations.release(self._reservations.live[number], ReservationEvent.NEEDED)

    def note_released(self, reservation: Reservation) -> None:
        """Forget a tree that became faulty."""
        self._forget(reservation.id)

    def on_cool(self, deadline: WarmTimeExpired, now: float) -> None:
        """Evict a tree whose warm period ended, unless it was used in between."""
        if self._until.get(deadline.reservation) == deadline.at:
            self.give_up(deadline.reservation)

    def _forget(self, number: int) -> None:
        if self._until.pop(number, None) is not None:
            self._order.remove(number)
            group = self._group_of.pop(number)
            self._kept[group].remove(number)
            if not self._kept[group]:
                del self._kept[group]


def _group(request: MulticastRequest, receivers: tuple[str, ...]) -> Group:
    return request.tenant, request.sender, frozenset(receivers)
