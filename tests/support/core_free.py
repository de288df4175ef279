"""Who could have light now: judged from the journal, from which devices are there, and from what the fabric is made of.

Nothing here asks the core whom it would serve. Where losses are known every tree is hung by hand; elsewhere legs count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from algorithms.power_budget import Passive, Transceiver
from blast_controller.core.inventory.custody import PROBER
from blast_controller.core.model.fabric import Host, OpticalPort, Splitter, StaticTree
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.core import World
from tests.support.core_power import Supply, can_be_lit, can_light_each_other, sorts_of, supply_of
from tests.support.journal import Journal


def splitters_of(reservations: Sequence[Reservation]) -> Counter[str]:
    """How many splitters each tenant holds; what serves nobody any longer is anybody's."""
    held: Counter[str] = Counter()
    for reservation in reservations:
        if reservation.state is not ReservationState.IDLE and not reservation.left_behind:
            held[reservation.request[0]] += sum(element.startswith("splitter:") for element in reservation.elements)
    return held


@dataclass(frozen=True)
class Group:
    """Whose light it is, who sends, and who receives."""

    tenant: str
    sender: Host
    receivers: tuple[Host, ...]

    @property
    def others(self) -> list[str]:
        """The racks of the receivers, but for the sender's own."""
        return sorted({host.rack for host in self.receivers} - {self.sender.rack})


class Free:
    """What nobody uses of a world in which all is quiet. What is kept warm is free: whoever needs it takes it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._fabric = world.fabric
        self._settings = world.core.settings
        self._journal = Journal(world.store, world.fabric)
        view, reservations = world.core.view, self._journal.reservations()
        taken = {e for r in reservations if r.state is not ReservationState.IDLE for e in r.elements}
        taken |= {element for element, holder in view.holders.items() if holder == PROBER}
        self._bad = self._journal.quarantined().keys() | {e for found in view.occupied.values() for e in found}
        self._not_free = taken | self._bad
        self._addresses_left = self._settings.group_network.num_addresses - 2 - len(reservations)
        self._held_by = splitters_of(reservations)

    # ---------------------------------------------------------------------------------------------- pieces

    def _is_there(self, device: Device) -> bool:
        return self._world.device(device).up

    def ports(self, end: str, switch: str) -> list[OpticalPort]:
        """The ports of a switch that nobody uses and that can be this end of a tree."""
        ports = [port for port in self._fabric.ports_on(switch) if port.end == end]
        return [
            port
            for port in ports
            if port.element not in self._not_free and self._is_there(self._fabric.racks[port.rack].datapath)
        ]

    def splitters(self, switch: str) -> list[Splitter]:
        """The splitters of a switch that nobody uses, with the legs that can be used."""
        found = [s for s in self._fabric.splitters.values() if s.switch == switch and s.element not in self._not_free]
        good = [splitter.without(self._bad.__contains__) for splitter in found]
        return [splitter for splitter in good if splitter.ways > 1]

    def _static_trees(self) -> Iterator[StaticTree]:
        return (tree for name, tree in self._fabric.static_trees.items() if f"static:{name}" not in self._not_free)

    # ---------------------------------------------------------------------------------------- who could start

    def group(self, request: MulticastRequest, receivers: Sequence[str]) -> Group:
        """These receivers of a request."""
        hosts = self._fabric.hosts
        return Group(request.tenant, hosts[request.sender], tuple(hosts[name] for name in receivers))

    def could_be_served_aside(self, group: Group) -> bool:
        """Whether a group could start that costs nobody else any light: within one rack, or over a static tree."""
        if not self._can_begin(group):
            return False
        static = not self._light_is_used_up(group.tenant) and any(reaches(t, group) for t in self._static_trees())
        return static or not group.others

    def could_have_a_tree(self, group: Group) -> bool:
        """Whether a group could start over an optical switch."""
        if not self._can_begin(group) or self._light_is_used_up(group.tenant):
            return False
        most = self._most_splitters(group.tenant)
        return any(self._has_tree(s, group, most) for s in self._fabric.switches if self._is_there(s))

    def _can_begin(self, group: Group) -> bool:
        racks = (self._fabric.racks[rack] for rack in {group.sender.rack, *group.others})
        return self._addresses_left > 0 and all(self._is_there(rack.datapath) for rack in racks)

    def _light_is_used_up(self, tenant: str) -> bool:
        most = self._settings.limits(tenant).max_light_seconds
        return most is not None and self._world.core.view.light_used(tenant, self._world.now) >= most

    def _most_splitters(self, tenant: str) -> int:
        """How many splitters a tree of this tenant may have."""
        of_tenant = self._settings.limits(tenant).max_splitters
        limits = [self._settings.most_splitters, None if of_tenant is None else of_tenant - self._held_by[tenant]]
        return max(0, min([len(self._fabric.splitters), *(limit for limit in limits if limit is not None)]))

    def _has_tree(self, switch: str, group: Group, most: int) -> bool:
        roots = self.ports(self._fabric.root_end(group.sender.rack), switch)
        leaves = [self.ports(self._fabric.leaf_end(rack), switch) for rack in group.others]
        if not roots or not all(leaves):
            return False
        splitters = self.splitters(switch)
        # A single receiver lights the sender's own port from the other end, without a splitter.
        looped = self._settings.loop_leaf and len(leaves) > 1
        if not self._fabric.optics.budgeted(switch):
            return most_legs(splitters, most) >= len(leaves) + looped
        supply, passed = supply_of(self._fabric, splitters), self._fabric.optics.passes[switch]
        ends = product(*(sorts_of(self._fabric, ports) for ports in (roots, *leaves)))
        return any(self._can_be_lit(sender, receivers, supply, passed, most) for sender, *receivers in ends)

    def _can_be_lit(
        self, sender: Transceiver, receivers: list[Transceiver], supply: Supply, switch: Passive, most: int
    ) -> bool:
        if not self._settings.loop_leaf:
            return can_be_lit(sender, tuple(receivers), supply, switch, most)
        two_way = len(receivers) == 1 and can_light_each_other(sender, receivers[0], switch)
        return two_way or can_be_lit(sender, (*receivers, sender), supply, switch, most)


def reaches(tree: StaticTree, group: Group) -> bool:
    """Whether a static tree goes from the sender to all receivers; those of a rack that sends need no light."""
    at_root = tree.root_host == group.sender.name if tree.root_host else tree.root_rack == group.sender.rack
    racks = {*tree.leaf_ports, *([] if tree.root_host else [group.sender.rack])}
    return at_root and all(host.name in tree.leaf_hosts or host.rack in racks for host in group.receivers)


def most_legs(splitters: Sequence[Splitter], most: int) -> int:
    """How many legs a tree of at most so many of these splitters can have."""
    return 1 + sum(sorted((splitter.ways - 1 for splitter in splitters), reverse=True)[:most])
