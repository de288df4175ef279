"""Resources that could serve a pending part, with the time: on each optical switch, or by a static tree."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from algorithms.b_matching.feasibility import Feasibility
from blast_controller.core.explaining.availability import NEVER, Availability
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.light.static_tree import covers
from blast_controller.core.model.fabric import Fabric, StaticTree, rack_of
from blast_controller.core.model.hyper_edge import leaves_of
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.splitter_limits import SplitterLimits


class TreeSizes:
    """Which splitters reach how many racks: ordinary ones, for under a power budget weak ones may need others."""

    def __init__(self, budget: LightBudget, orders: StandingOrders) -> None:
        self._budget, self._orders = budget, orders

    def leaves(self, racks: int) -> int:
        """Return the number of leaves of a tree to this number of racks, without the sender's."""
        return leaves_of(racks, self._orders.settings.loop_leaf)

    def fits(self, racks: int, switch: SwitchId, pool: Mapping[int, int], max_splitters: int | None) -> bool:
        """Return true if `max_splitters` of these splitters of a switch can connect `racks` racks to the sender's."""
        limits = [
            number for number in (self._orders.settings.max_splitters_per_tree, max_splitters) if number is not None
        ]
        choose = self._budget.choose(switch, min(limits, default=None))
        return Feasibility((), pool, choose).splitters(self.leaves(racks)) is not None


@dataclass(frozen=True, slots=True)
class SwitchProspect:
    """The resources of one optical switch for a group, with times.

    `ports` has the time at which each rack of the group has a free port, `splitters` the fan-out of each splitter and
    the time at which it is available.
    """

    switch: SwitchId
    ports: Mapping[str, float]
    splitters: tuple[tuple[float, int], ...]

    @property
    def ports_ready(self) -> float:
        """Return the time at which every rack of the group has a free port."""
        return max(self.ports.values())

    def pool(self, at: float) -> Counter[int]:
        """Return the number of splitters that are free at a time, by fan-out."""
        return Counter(fan_out for moment, fan_out in self.splitters if moment <= at)


@dataclass(frozen=True, slots=True)
class ProspectQuery:
    """Some receivers of a request."""

    request: MulticastRequest
    receivers: Sequence[str]


class Prospect:
    """The outlook of a wish at a moment. Changes nothing."""

    def __init__(
        self, wish: ProspectQuery, fabric: Fabric, availability: Availability, limits: SplitterLimits, sizes: TreeSizes
    ) -> None:
        self.request = wish.request
        self.now = availability.now
        self.availability = availability
        self._fabric, self._limits, self._sizes = fabric, limits, sizes
        self.root = self._fabric.hosts[wish.request.sender].rack
        self.hosts_of: dict[str, list[str]] = {}
        for host in wish.receivers:
            self.hosts_of.setdefault(self._fabric.hosts[host].rack, []).append(host)
        self.others = [rack for rack in self.hosts_of if rack != self.root]

    # ------------------------------------------------------------------------------------ what anyone needs

    @cached_property
    def absent(self) -> list[str]:
        """Return the racks of the group whose ToR is away."""
        return [rack for rack in dict.fromkeys((self.root, *self.hosts_of)) if self.is_absent(rack)]

    def is_absent(self, rack: str) -> bool:
        """Return true if a rack's ToR is disconnected."""
        return self.availability.is_absent(rack)

    @cached_property
    def has_address(self) -> bool:
        """Return true if a group address is free."""
        return self.availability.has_address

    @cached_property
    def light_used_up(self) -> bool:
        """Return true if the tenant has used its quota of lit time."""
        return self._limits.light_used_up(self.request.tenant, self.now)

    # ------------------------------------------------------------------------------------------- splitters

    def leaves(self, racks: int) -> int:
        """Return the number of leaves of a tree to this number of racks, without the sender's."""
        return self._sizes.leaves(racks)

    @property
    def sizes_in_use(self) -> list[int]:
        """Return the fan-outs of the fabric's splitters."""
        return sorted({splitter.fan_out for splitter in self._fabric.splitters.values()})

    def fits(self, racks: int, switch: SwitchId, pool: Mapping[int, int], at: float) -> bool:
        """Return true if these splitters of a switch reach this number of other racks.

        The tenant's limit on splitters at that time applies.
        """
        return self._sizes.fits(racks, switch, pool, self.splitters_left(at))

    def would_fit(self, switch: SwitchId, pool: Mapping[int, int]) -> bool:
        """Return true if these splitters connect all racks when the tenant's limit is ignored."""
        return self._sizes.fits(len(self.others), switch, pool, None)

    def splitters_left(self, at: float) -> int | None:
        """Return how many more splitters the tenant may hold at this time; None without a limit."""
        limit = self._limits.max_splitters(self.request.tenant)
        if limit is None:
            return None
        return max(0, limit - sum(count for end, count in self._own_splitters if end > at))

    @cached_property
    def held_by_tenant(self) -> dict[int, list[ElementId]]:
        """Return the splitters that count toward the tenant's limit, by reservation."""
        return self._limits.held_by(self.request.tenant)

    @cached_property
    def _own_splitters(self) -> list[tuple[float, int]]:
        return [(self.availability.end(number), len(names)) for number, names in self.held_by_tenant.items()]

    # ----------------------------------------------------------------------------------------------- offers

    @cached_property
    def offers(self) -> list[SwitchProspect]:
        """Return the offers of all optical switches, earliest first.

        At equal times, the offer with fewer blocked racks comes first.
        """
        offers = [self._offer(switch) for switch in self._fabric.switches]
        return sorted(offers, key=lambda offer: (self.start_on(offer), len(self.without_port(offer))))

    def _offer(self, switch: SwitchId) -> SwitchProspect:
        ends = {self.root: self._fabric.root_end(self.root)} | {r: self._fabric.leaf_end(r) for r in self.others}
        moments = {rack: self._port_moment(end, switch) for rack, end in ends.items()}
        found = [self.availability.usable_part(s) for s in self._fabric.splitters_on(switch)]
        return SwitchProspect(
            switch, moments, tuple((self.availability.splitter(s), s.fan_out) for s in found if s.fan_out > 1)
        )

    def _port_moment(self, end: str, switch: SwitchId) -> float:
        ports = self._fabric.racks[rack_of(end)].optical_ports
        ports = tuple(port for port in ports if (port.end, port.switch) == (end, switch))
        return min(map(self.availability.port, ports), default=NEVER)

    def without_port(self, offer: SwitchProspect) -> list[str]:
        """Return the racks that have no free port on the offer's switch now."""
        return [rack for rack, moment in offer.ports.items() if moment > self.now]

    @cached_property
    def static_trees(self) -> list[tuple[float, StaticTree]]:
        """Return the static trees that reach all receivers, earliest available first."""
        found = [pair for pair in self.availability.static_trees if self.reaches_all(pair[1], self.request_hosts)]
        return sorted(found, key=lambda pair: pair[0])

    @property
    def request_hosts(self) -> list[str]:
        """Return every receiver that is asked about."""
        return [host for hosts in self.hosts_of.values() for host in hosts]

    def reaches_all(self, tree: StaticTree, hosts: Iterable[str]) -> bool:
        """Return true if a static tree leads from the sender to these hosts."""
        sender, members = self._fabric.hosts[self.request.sender], [self._fabric.hosts[name] for name in hosts]
        return covers(tree, sender, members)

    # ------------------------------------------------------------------------------------------------ start

    @cached_property
    def start(self) -> float:
        """Return the earliest moment at which all that is needed would be free; NEVER where that cannot be foreseen."""
        if self.absent or not self.has_address:
            return NEVER
        if not self.others:
            return self.now
        if self.light_used_up:
            return NEVER
        static = min((moment for moment, _ in self.static_trees), default=NEVER)
        return min([static, *map(self.start_on, self.offers[:1])])

    def start_on(self, offer: SwitchProspect) -> float:
        """Return the earliest moment at which a switch could serve the group."""
        ready = offer.ports_ready
        ends = (*(moment for moment, _ in offer.splitters), *(end for end, _ in self._own_splitters))
        moments = sorted({ready, *(moment for moment in ends if ready < moment)} - {NEVER})
        # More splitters never make a tree impossible, so that the first moment is found by halving.
        first = bisect_left(moments, True, key=lambda at: self.fits(len(self.others), offer.switch, offer.pool(at), at))
        return moments[first] if first < len(moments) else NEVER
