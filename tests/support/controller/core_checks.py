"""Checks of a whole core: which groups could be granted now, what devices hold, the reserve, and a replay of its life.

The checks do not use the core's own decisions. If losses are known, they build every tree by hand; otherwise they count
splitter outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from algorithms.power_budget import Passive, Transceiver
from blast_controller.core.auditor import AuditReport
from blast_controller.core.controller import Core
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.light.layout import everything
from blast_controller.core.model.commands import Command, Optimize
from blast_controller.core.model.events import AuditRequested
from blast_controller.core.model.fabric import Host, OpticalPort, Splitter, StaticTree
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, MulticastRequest, Part, Request, RequestEvent
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.controller.core import World
from tests.support.controller.core_power import Supply, can_be_lit, can_light_each_other, sorts_of, supply_of
from tests.support.controller.journal import Journal


def splitters_of(reservations: Sequence[Reservation]) -> Counter[str]:
    """Return the number of splitters that each tenant uses."""
    held: Counter[str] = Counter()
    for reservation in reservations:
        if reservation.state is not ReservationState.IDLE and not reservation.left_behind:
            held[reservation.request[0]] += sum(element.startswith("splitter:") for element in reservation.elements)
    return held


@dataclass(frozen=True)
class Group:
    """The owner, the sender and the receivers of a group."""

    tenant: str
    sender: Host
    receivers: tuple[Host, ...]

    @property
    def others(self) -> list[str]:
        """Return the racks of the receivers, without the sender's own."""
        return sorted({host.rack for host in self.receivers} - {self.sender.rack})


class Free:
    """The unused resources of a quiet world. Warm trees count as unused, since a request can evict them."""

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
        """Return the unused ports of a switch that can be this end of a tree."""
        ports = [port for port in self._fabric.ports_on(switch) if port.end == end]
        return [
            port
            for port in ports
            if port.element not in self._not_free and self._is_there(self._fabric.racks[port.rack].datapath)
        ]

    def splitters(self, switch: str) -> list[Splitter]:
        """Return the unused splitters of a switch, with their usable outputs."""
        found = [s for s in self._fabric.splitters.values() if s.switch == switch and s.element not in self._not_free]
        good = [splitter.without(self._bad.__contains__) for splitter in found]
        return [splitter for splitter in good if splitter.fan_out > 1]

    def _static_trees(self) -> Iterator[StaticTree]:
        return (tree for name, tree in self._fabric.static_trees.items() if f"static:{name}" not in self._not_free)

    # ---------------------------------------------------------------------------------------- who could start

    def group(self, request: MulticastRequest, receivers: Sequence[str]) -> Group:
        """Return the group of these receivers of a request."""
        hosts = self._fabric.hosts
        return Group(request.tenant, hosts[request.sender], tuple(hosts[name] for name in receivers))

    def could_be_served_aside(self, group: Group) -> bool:
        """Return True if a group could start without an optical switch: within one rack, or over a static tree."""
        if not self._can_begin(group):
            return False
        static = not self._light_is_used_up(group.tenant) and any(reaches(t, group) for t in self._static_trees())
        return static or not group.others

    def could_have_a_tree(self, group: Group) -> bool:
        """Return True if a group could start over an optical switch."""
        if not self._can_begin(group) or self._light_is_used_up(group.tenant):
            return False
        maximum = self._max_splitters_of(group.tenant)
        return any(self._has_tree(s, group, maximum) for s in self._fabric.switches if self._is_there(s))

    def _can_begin(self, group: Group) -> bool:
        racks = (self._fabric.racks[rack] for rack in {group.sender.rack, *group.others})
        return self._addresses_left > 0 and all(self._is_there(rack.datapath) for rack in racks)

    def _light_is_used_up(self, tenant: str) -> bool:
        maximum = self._settings.limits(tenant).max_light_seconds
        return maximum is not None and self._world.core.view.light_used(tenant, self._world.now) >= maximum

    def _max_splitters_of(self, tenant: str) -> int:
        """Return the maximum number of splitters in a tree of this tenant."""
        of_tenant = self._settings.limits(tenant).max_splitters
        limits = [
            self._settings.max_splitters_per_tree,
            None if of_tenant is None else of_tenant - self._held_by[tenant],
        ]
        return max(0, min([len(self._fabric.splitters), *(limit for limit in limits if limit is not None)]))

    def _has_tree(self, switch: str, group: Group, max_splitters: int) -> bool:
        roots = self.ports(self._fabric.root_end(group.sender.rack), switch)
        leaves = [self.ports(self._fabric.leaf_end(rack), switch) for rack in group.others]
        if not roots or not all(leaves):
            return False
        splitters = self.splitters(switch)
        # A single receiver lights the sender's own port from the other end, without a splitter.
        looped = self._settings.loop_leaf and len(leaves) > 1
        if not self._fabric.optics.budgeted(switch):
            return max_outputs(splitters, max_splitters) >= len(leaves) + looped
        supply, passed = supply_of(self._fabric, splitters), self._fabric.optics.passes[switch]
        ends = product(*(sorts_of(self._fabric, ports) for ports in (roots, *leaves)))
        return any(self._can_be_lit(sender, receivers, supply, passed, max_splitters) for sender, *receivers in ends)

    def _can_be_lit(
        self, sender: Transceiver, receivers: list[Transceiver], supply: Supply, switch: Passive, max_splitters: int
    ) -> bool:
        if not self._settings.loop_leaf:
            return can_be_lit(sender, tuple(receivers), supply, switch, max_splitters)
        two_way = len(receivers) == 1 and can_light_each_other(sender, receivers[0], switch)
        return two_way or can_be_lit(sender, (*receivers, sender), supply, switch, max_splitters)


def reaches(tree: StaticTree, group: Group) -> bool:
    """Return True if a static tree reaches all receivers; receivers in the sender's rack need none."""
    at_root = tree.root_host == group.sender.name if tree.root_host else tree.root_rack == group.sender.rack
    racks = {*tree.leaf_ports, *([] if tree.root_host else [group.sender.rack])}
    return at_root and all(host.name in tree.leaf_hosts or host.rack in racks for host in group.receivers)


def max_outputs(splitters: Sequence[Splitter], max_splitters: int) -> int:
    """Return the maximum number of outputs of a tree of up to `max_splitters` of these splitters."""
    return 1 + sum(sorted((splitter.fan_out - 1 for splitter in splitters), reverse=True)[:max_splitters])


def image(core: Core) -> str:
    """Return all observable state of a core that an event may change."""
    view = core.view
    return repr(
        (
            core.requests,
            list(core.reservations),
            # The order in which a journal is read is no difference.
            *map(sorted, (view.holders.items(), view.group_addresses, view.quarantined.items(), view.leases_over)),
            (dict(view.occupied), dict(view.without_link), dict(view.away)),
            (view.waiting, view.kept_free_for, core.draining, core.settings),
            # Reading the next deadline makes the core forget requests that no longer count.
            (core.next_timer(), view.deadlines),
            (view.is_auditing, core.audit_number, core.audit_waits_for),
            (view.fiber_check, view.is_checking_fibers, core.fiber_topic, sorted(view.probe_circuits.items())),
            (view.warm_counts, sorted(view.trusted), view.alone_since),
            *(sorted(item for item in counts.items() if item[1]) for counts in (view.idle, view.dark)),
        )
    )


def check_history(request: Request) -> None:
    """Check the order of events: granted, changed, revoked, granted again, …, and ended last."""
    assert [e.sequence for e in request.events] == list(
        range(request.latest_event - len(request.events) + 1, request.latest_event + 1)
    )
    if len(request.events) == request.latest_event:
        for part in request.parts:
            check_part_history(part, [e for e in request.events if e.part == part.index])


def check_part_history(part: Part, events: Sequence[RequestEvent]) -> None:
    """Check the order of a part's events: granted, paused or revoked before a further grant, and ended last."""
    ends = [e for e in events if e.kind is EventKind.ENDED]
    assert ends == (list(events[-1:]) if part.state.final else [])
    granted = False
    for event in events:
        match event.kind:
            case EventKind.GRANTED:
                assert not granted, f"part {part.index} was granted twice"
                granted = True
            case EventKind.REVOKED | EventKind.PAUSED:
                assert granted
                granted = False
    assert part.state.final or granted == (part.state is PartState.ACTIVE)


def check_desired(world: World) -> None:
    """Check that devices hold all required state, and otherwise foreign state only."""
    live = list(world.core.reservations)
    at_rest = (ReservationState.LIT, ReservationState.IDLE)
    assert all(r.state in at_rest and not r.at_work for r in live), live
    expected = everything(r.intended for r in live)
    for switch in world.switches.values():
        assert switch.held - switch.foreign == {c for c in expected.circuits if c.switch == switch.name}
    for tor in world.tors.values():
        rules = {(r.id, f) for r in live for f in r.intended.forwards.get(tor.datapath, ())}
        assert tor.held == rules, (tor.held, rules)


def audited(world: World, dry_run: bool) -> AuditReport:
    """Return the report of a whole audit without further faults."""
    world.handle(AuditRequested(dry_run))
    number = world.core.audit_number
    world.settle()
    report = world.announced[number]
    assert isinstance(report, AuditReport)
    return report


def check_no_part_waits_needlessly(world: World) -> None:
    """Check that, in a quiet world, no part waits that could be granted."""
    requests = world.core.requests.values()
    waiting = [(request, part) for request in requests for part in request.parts if part.state is PartState.PENDING]
    if not waiting:
        return
    free, kept_free_for = Free(world), world.core.view.kept_free_for
    for request, part in waiting:
        group = free.group(request.current, part.receivers)
        assert not free.could_be_served_aside(group), f"{part} waits needlessly"
        if kept_free_for in (None, (request.current.id, part.slot)):
            assert not free.could_have_a_tree(group), f"{part} waits needlessly"


Kind = tuple[str, str]
"""(switch, what it is one of)"""


def pieces(core: Core) -> Iterator[tuple[str, Kind]]:
    """Return every port and splitter in service, with its kind; of a splitter, only working outputs count."""
    for rack in core.fabric.racks.values():
        for port in rack.optical_ports:
            yield port.element, (port.switch, port.end)
    for splitter in core.fabric.splitters.values():
        good = [output for output in splitter.outputs if splitter.output_element(output) not in core.view.quarantined]
        yield splitter.element, (splitter.switch, f"1:{len(good)}")


def recounted(core: Core) -> tuple[Counter[Kind], Counter[Kind]]:
    """Return the number of pieces of each kind that no transfer uses, and how many of these are dark or about to be."""
    idle: Counter[Kind] = Counter()
    dark: Counter[Kind] = Counter()
    states = {reservation.id: reservation.state for reservation in core.reservations}
    for element, kind in pieces(core):
        if core.view.unusable(element) is not None or kind[1] in ("1:0", "1:1"):
            continue
        state = states.get(core.view.holders.get(element, 0), ReservationState.RELEASED)
        if state in (ReservationState.RELEASED, ReservationState.RELEASING, ReservationState.IDLE):
            idle[kind] += 1
            dark[kind] += state is not ReservationState.IDLE
    return idle, dark


def counted(core: Core) -> tuple[Counter[Kind], Counter[Kind]]:
    """Return the counts of the core itself."""

    def named(counts: Mapping) -> Counter[Kind]:
        return Counter({(k.switch, k.end or f"1:{k.fan_out}"): number for k, number in counts.items()})

    return named(core.view.idle), named(core.view.dark)


def kept_lit(core: Core, kind: Kind, trusted: bool) -> list[Reservation]:
    """Return the warm trees with a piece of this kind, of trusted groups or of others."""
    of_kind = {element for element, its_kind in pieces(core) if its_kind == kind}
    idle = [r for r in core.reservations if r.state is ReservationState.IDLE and of_kind & r.elements]
    return [r for r in idle if (r.id in core.view.trusted) == trusted]


def is_left_alone(core: Core, switch: str) -> bool:
    """Return True if nothing on a switch can be evicted now: it is disconnected, or is setting circuits."""
    lighting = (r for r in core.reservations if r.adding and r.rollout.waits_for(switch))
    return switch in core.view.away or any(lighting)


def has_fabric_to_itself(core: Core, now: float) -> bool:
    """Return True if only one group has been active for as long as trees are kept."""
    return now - core.view.alone_since > core.settings.keep_warm


def check_reserve(core: Core, now: float) -> None:
    """Check that the core's counts are right, and that the reserve is dark unless no warm tree could be evicted."""
    idle, dark = recounted(core)
    assert (idle, dark) == counted(core)
    share = core.settings.warm_reserve
    alone = core.settings.keep_warm > 0 and has_fabric_to_itself(core, now)
    for kind, number in idle.items() if share else ():
        if is_left_alone(core, kind[0]):
            continue
        if dark[kind] < max(1, int(share * number)):
            assert not kept_lit(core, kind, trusted=False), f"{kind}: a newcomer keeps it from being dark"
        if dark[kind] < int(share * number):
            assert alone or not kept_lit(core, kind, trusted=True), f"{kind}: {dark[kind]} dark of {number}"


class Life:
    """The record of a core's life since its creation: `note` records every call, by the name of its method."""

    def __init__(self, core: Core) -> None:
        self._fabric, self._settings = core.fabric, core.settings
        self._calls: list[tuple[str, tuple, Sequence[object]]] = []

    def note(self, method: str, arguments: tuple, result: Sequence[Command]) -> None:
        """Record a call of the core and its result."""
        self._calls.append((method, arguments, [_plain(command) for command in result]))

    def live_again(self) -> None:
        """Replay all calls with another core, and compare the results."""
        core = Core(self._fabric, self._settings)
        for method, arguments, answered in self._calls:
            again = [_plain(command) for command in getattr(core, method)(*arguments) or ()]
            assert again == answered, f"{method}{arguments} comes to something else without what was refused before"


def _plain(command: Command) -> object:
    """Return a command in a comparable form."""
    if not isinstance(command, Optimize):
        return command
    asked = command.contention
    pools = {switch: dict(free.pool) for switch, free in asked.free.items()}
    return command.revision, command.seconds, asked.contenders, dict(asked.left), pools
