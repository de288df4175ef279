"""What a part that waits could be served with, and from when on: on each optical switch, or by a static tree."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from algorithms.b_matching.feasibility import Feasibility
from blast_controller.core.availability import NEVER, Availability
from blast_controller.core.light.static_tree import covers
from blast_controller.core.model.fabric import Splitter, StaticTree, rack_of
from blast_controller.core.model.hyper_edge import leaves_of
from blast_controller.core.model.identifiers import ElementId, SwitchId, is_splitter
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.state import State


@dataclass(frozen=True, slots=True)
class Offer:
    """What one optical switch can give to a group, and when.

    `ports` says of each rack of the group when it has a free port there, `splitters` of each splitter how many ways it
    has and from when on.
    """

    switch: SwitchId
    ports: Mapping[str, float]
    splitters: tuple[tuple[float, int], ...]

    @property
    def ports_ready(self) -> float:
        """When every rack of the group has a port."""
        return max(self.ports.values())

    def pool(self, at: float) -> Counter[int]:
        """The splitters that are free at a moment, by their ways."""
        return Counter(ways for moment, ways in self.splitters if moment <= at)


class Prospect:
    """The outlook of some receivers of a request. Reads the core's state, changes nothing."""

    def __init__(self, state: State, request: MulticastRequest, receivers: Sequence[str], now: float) -> None:
        self.request = request
        self.now = now
        self.availability = Availability(state, now)
        self._state = state
        self._fabric, self._inventory = state.fabric, state.inventory
        self.root = self._fabric.hosts[request.sender].rack
        self.hosts_of: dict[str, list[str]] = {}
        for host in receivers:
            self.hosts_of.setdefault(self._fabric.hosts[host].rack, []).append(host)
        self.others = [rack for rack in self.hosts_of if rack != self.root]

    # ------------------------------------------------------------------------------------ what anyone needs

    @cached_property
    def absent(self) -> list[str]:
        """The racks of the group whose ToR is away."""
        return [rack for rack in dict.fromkeys((self.root, *self.hosts_of)) if self.is_absent(rack)]

    def is_absent(self, rack: str) -> bool:
        """Whether a rack's ToR is away."""
        return self._fabric.datapath_of(rack) in self._inventory.away

    @cached_property
    def has_address(self) -> bool:
        """Whether there is a group address for one more reservation."""
        return len(self._state.reservations.live) < self._state.orders.settings.group_network.num_addresses - 2

    @cached_property
    def light_used_up(self) -> bool:
        """Whether the tenant may have no light at all for now."""
        return self._state.quota.exhausted(self.request.tenant, self.now)

    # ------------------------------------------------------------------------------------------- splitters

    def leaves(self, racks: int) -> int:
        """How many ends a tree to so many racks has, the sender's not counted."""
        return leaves_of(racks, self._state.orders.settings.loop_leaf)

    def fits(self, racks: int, switch: SwitchId, pool: Mapping[int, int], at: float) -> bool:
        """Whether these splitters of a switch, and what the tenant may hold then, join so many racks to the sender's.

        Under a power budget that is so for ordinary racks; weak ones may need others.
        """
        most = [n for n in (self._state.orders.settings.most_splitters, self.splitters_left(at)) if n is not None]
        return self._feasible(racks, switch, pool, min(most, default=None))

    def would_fit(self, switch: SwitchId, pool: Mapping[int, int]) -> bool:
        """Whether these splitters join all racks, if the tenant might hold as many as it wants."""
        return self._feasible(len(self.others), switch, pool, self._state.orders.settings.most_splitters)

    def _feasible(self, racks: int, switch: SwitchId, pool: Mapping[int, int], most: int | None) -> bool:
        choose = self._state.budget.choose(switch, most)
        return Feasibility((), pool, choose).splitters(self.leaves(racks)) is not None

    def splitters_left(self, at: float) -> int | None:
        """How many more splitters the tenant may hold at this moment; None: as many as there are."""
        most = self._state.orders.limits(self.request.tenant).max_splitters
        if most is None:
            return None
        return max(0, most - sum(count for end, count in self._own_splitters if end > at))

    @cached_property
    def _own_splitters(self) -> list[tuple[float, int]]:
        return [(self.availability.end(number), len(names)) for number, names in self.held_by_tenant().items()]

    def held_by_tenant(self) -> dict[int, list[ElementId]]:
        """The splitters of the tenant's reservations that count against what it may hold."""
        live = self._state.reservations.live.values()
        mine = [r for r in live if r.request[0] == self.request.tenant and r.splitters]
        held = {r.id: sorted(element for element in r.elements if is_splitter(element)) for r in mine}
        return {number: elements for number, elements in held.items() if elements}

    # ----------------------------------------------------------------------------------------------- offers

    @cached_property
    def offers(self) -> list[Offer]:
        """What each optical switch offers, the earliest first; of equals the one on which fewer racks have to wait."""
        offers = [self._offer(switch) for switch in self._fabric.switches]
        return sorted(offers, key=lambda offer: (self.start_on(offer), len(self.without_port(offer))))

    def _offer(self, switch: SwitchId) -> Offer:
        ends = {self.root: self._fabric.root_end(self.root)} | {r: self._fabric.leaf_end(r) for r in self.others}
        moments = {rack: self._port_moment(end, switch) for rack, end in ends.items()}
        found = [self._usable(s) for s in self._fabric.splitters.values() if s.switch == switch]
        return Offer(switch, moments, tuple((self.availability.splitter(s), s.ways) for s in found if s.ways > 1))

    def _port_moment(self, end: str, switch: SwitchId) -> float:
        ports = self._fabric.racks[rack_of(end)].optical_ports
        ports = tuple(port for port in ports if (port.end, port.switch) == (end, switch))
        return min(map(self.availability.port, ports), default=NEVER)

    def _usable(self, splitter: Splitter) -> Splitter:
        return splitter.without(lambda leg: self._inventory.unusable(leg) is not None)

    def without_port(self, offer: Offer) -> list[str]:
        """The racks that have no free port on the offer's switch now."""
        return [rack for rack, moment in offer.ports.items() if moment > self.now]

    @cached_property
    def static_trees(self) -> list[tuple[float, StaticTree]]:
        """The static trees that reach everybody, the one that is free first at the head."""
        trees = [tree for tree in self._inventory.usable_static() if self.reaches_all(tree, self.request_hosts)]
        return sorted(((self.availability.static_tree(tree), tree) for tree in trees), key=lambda found: found[0])

    @property
    def request_hosts(self) -> list[str]:
        """Every receiver that is asked about."""
        return [host for hosts in self.hosts_of.values() for host in hosts]

    def reaches_all(self, tree: StaticTree, hosts: Iterable[str]) -> bool:
        """Whether a static tree leads from the sender to these hosts."""
        sender, members = self._fabric.hosts[self.request.sender], [self._fabric.hosts[name] for name in hosts]
        return covers(tree, sender, members)

    # ------------------------------------------------------------------------------------------------ start

    @cached_property
    def start(self) -> float:
        """The earliest moment at which all that is needed would be free; NEVER where that cannot be foreseen."""
        if self.absent or not self.has_address:
            return NEVER
        if not self.others:
            return self.now
        if self.light_used_up:
            return NEVER
        static = min((moment for moment, _ in self.static_trees), default=NEVER)
        return min([static, *map(self.start_on, self.offers[:1])])

    def start_on(self, offer: Offer) -> float:
        """The earliest moment at which a switch could serve the group."""
        ready = offer.ports_ready
        ends = (*(moment for moment, _ in offer.splitters), *(end for end, _ in self._own_splitters))
        moments = sorted({ready, *(moment for moment in ends if ready < moment)} - {NEVER})
        # More splitters never make a tree impossible, so that the first moment is found by halving.
        first = bisect_left(moments, True, key=lambda at: self.fits(len(self.others), offer.switch, offer.pool(at), at))
        return moments[first] if first < len(moments) else NEVER
