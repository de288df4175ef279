"""The dispatcher: keeps the scheduling policy informed of parts and hardware, and executes its decisions.

The policy is in `algorithms.scheduling`; it counts ports and splitters and knows neither names nor devices. Before
every decision its state is compared, part by part, with the actual state (`part_views` selects the parts), so that no
path of a part's life can be forgotten here. Parts within their sender's rack and parts on static trees do not concern
it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup, bits, directional_ports, shared_ports
from algorithms.scheduling import POLICIES
from algorithms.scheduling.advised import AdvisedScheduler
from algorithms.scheduling.job import Job, PartName, racks_of
from algorithms.scheduling.placing import Placement, PlacementTerms, Unplaced
from algorithms.scheduling.policy import State
from algorithms.scheduling.selection import Start
from algorithms.scheduling.tenants import Tenants
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.kinds import PieceKind
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.fabric import Fabric, OpticalPort, rack_of
from blast_controller.core.model.hyper_edge import hyper_edge
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.lease_terms import service_of
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import MulticastRequest, Part, Request
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.light_plan import LightPlan
from blast_controller.core.policy.optimizing import Optimizing
from blast_controller.core.rollout.reservation import Reservation

SET_UP = 0.025
"""Seconds that a start costs, as the policy sees it (Blast, section VI-A, with the reason in V-B)."""


@dataclass(frozen=True, slots=True)
class PowerView:
    """The policy's view of power: the budget, and the elements that the starts of a decision take."""

    budget: LightBudget
    plan: LightPlan


@dataclass(frozen=True, slots=True)
class PartView:
    """A part to compare with what the policy knows of it; `reservation` is what it holds."""

    request: Request
    part: Part
    reservation: Reservation | None

    @property
    def name(self) -> PartName:
        """Return the policy's name of the part."""
        return self.request.current.id, self.part.slot

    @property
    def busy(self) -> bool:
        """Return true while devices are changing the part's reservation."""
        return self.reservation is not None and self.reservation.busy


@dataclass(frozen=True, slots=True)
class Decision:
    """Parts to serve, or (`job.continues`) to renew for another lease, and parts to pause.

    If the decision is postponed, the leases `again` must be ended once more before the next one.
    """

    starts: tuple[Start, ...]
    paused: tuple[PartName, ...]
    again: tuple[PartName, ...] = ()


class Dispatcher:
    """The scheduling policy at work on one fabric."""

    def __init__(
        self, fabric: Fabric, inventory: Inventory, orders: StandingOrders, optimizing: Optimizing, light: PowerView
    ) -> None:
        self._fabric = fabric
        self._inventory = inventory
        self._orders = orders
        self._light = light
        self._optimizing = optimizing
        self._numbers = {rack: number for number, rack in enumerate(fabric.racks)}
        self._vertices = directional_ports(len(fabric.racks)) if fabric.directional else shared_ports
        self._racks = list(fabric.racks)
        self.start_over()

    def start_over(self) -> None:
        """Reset the policy with the current settings; it then knows no part and no hardware."""
        self._inventory.reset_offer()
        self._limits: dict[str, int] = {}
        self._known_jobs: dict[PartName, Job] = {}
        sizes = range(2, max((s.fan_out for s in self._fabric.splitters.values()), default=1) + 1)
        nothing: dict[str, Feasibility] = {
            switch: Feasibility(
                [0] * (2 * len(self._racks)),
                dict.fromkeys(sizes, 0),
                self._light.budget.choose(switch, self._orders.settings.max_splitters_per_tree),
            )
            for switch in self._fabric.switches
        }
        weights = {name: limits.share for name, limits in self._orders.settings.tenants.items()}
        state = State(SET_UP, Tenants(weights))
        self._scheduler = AdvisedScheduler(POLICIES[self._orders.settings.policy], nothing, state, placing=self)

    @property
    def kept_free_for(self) -> PartName | None:
        """Return the part that has waited too long, for which everything that it needs is kept free."""
        holder = self._scheduler.holder
        return None if holder is None else holder.name

    def has_given_light_to(self, name: PartName) -> bool:
        """Return true if the policy counts the part as served."""
        return self._scheduler.light_of(name) is not None

    @property
    def tried(self) -> int:
        """Return how many placements the last decision tried for a part."""
        return self._scheduler.tried

    def lacks_light(self, name: PartName) -> bool:
        """Return true if a part waits because no tree of the free resources meets the power budget."""
        return self._scheduler.is_refused(name)

    # ------------------------------------------------------------------------------ what the policy asks back

    def place(self, job: Job, terms: PlacementTerms) -> Placement | Unplaced:
        """Plan the tree of a job whose counts of ports and splitters fit; without a power budget the counts suffice."""
        if not self._light.budget.covers(SwitchId(terms.switch)):
            return Placement(terms.pieces)
        count = len(self._racks)
        (root,) = (self._racks[number] for number in racks_of(job.sender, count))
        racks = (self._racks[number] for number in racks_of(job.receivers, count))
        return self._light.plan.place(job.name, (root, tuple(rack for rack in racks if rack != root)), terms)

    def has_kept(self, name: PartName) -> bool:
        """Return true if a part with an expired lease still holds its resources."""
        return self._light.plan.has_kept(name)

    def keep(self, name: PartName) -> None:
        """Renew the part's tree for another lease."""
        self._light.plan.keep(name)

    # ------------------------------------------------------------------------------------------- deciding

    def decide(
        self, views: Iterable[PartView], leases: Collection[PartView], limits: Mapping[str, int], now: float
    ) -> Decision:
        """Decide from the current state of `views` and the ends of `leases`.

        `limits` has the total number of splitters of a tenant, -1 if it may not be served at all.
        """
        found = list(views)
        changes = self._inventory.take_offer_changes()
        self._learn_sizes({kind.switch for kind in changes if kind.fan_out})
        self._scheduler.gather()
        self._lose(changes)
        for view in found:
            self._end(view, now)
        over = {view.name: view.reservation.elements for view in leases if view.reservation is not None}
        self._light.plan.begin({name: frozenset(elements) for name, elements in over.items()})
        for view in leases:
            self._end_lease(view, now)
        self._limit(limits, now)
        self._regain(changes, now)
        for view in found:
            self._begin(view, now)
        return self._decided(now)

    def _decided(self, now: float) -> Decision:
        if not self._optimizing.on:
            return Decision(*self._scheduler.decide(now))
        chosen = self._optimizing.advice(self._scheduler.contention(now), now)
        if chosen is None:
            return Decision(*self._scheduler.postpone(now))
        return Decision(*self._scheduler.decide(now, chosen))

    def _learn_sizes(self, switches: Iterable[SwitchId]) -> None:
        """Teach the policy the sizes of splitters with lost outputs."""
        for switch in switches:
            if not self._light.budget.knows(switch, self._inventory.capacity.sizes(switch)):
                self._light.budget.learn(switch, self._inventory.usable_splitters(switch))

    def _lose(self, changes: Mapping[PieceKind, int]) -> None:
        for kind, number in changes.items():
            for _ in range(-number):
                self._scheduler.lose(kind.switch, *self._hardware(kind))

    def _regain(self, changes: Mapping[PieceKind, int], now: float) -> None:
        for kind, number in changes.items():
            for _ in range(number):
                self._scheduler.regain(kind.switch, *self._hardware(kind), now)

    def _hardware(self, kind: PieceKind) -> tuple[int, Pieces]:
        return (0, (kind.fan_out,)) if kind.fan_out else (1 << self._vertex(kind.end), ())

    def _vertex(self, end: str) -> int:
        """Return the policy's number of an end, see `group`."""
        number = self._numbers[rack_of(end)]
        return number + len(self._racks) if end == self._fabric.leaf_end(rack_of(end)) != rack_of(end) else number

    def _limit(self, limits: Mapping[str, int], now: float) -> None:
        before, self._limits = self._limits, dict(limits)
        for tenant in {**before, **limits}:
            if before.get(tenant) != limits.get(tenant):
                self._scheduler.limit(tenant, limits.get(tenant), now)

    def _end(self, view: PartView, now: float) -> None:
        """Remove a part from the policy that ended, was revoked, or has a different tree than the policy knows."""
        start = self._scheduler.light_of(view.name)
        if start is not None:
            self._end_light(view, start, now)
        elif self._scheduler.waits(view.name):
            if view.part.state is not PartState.PENDING:
                self._scheduler.withdraw(view.name, now)
            elif (job := self._job(view)) != self._known_jobs.get(view.name):
                self._known_jobs[view.name] = job
                self._scheduler.extend(job, now)

    def _end_light(self, view: PartView, start: Start, now: float) -> None:
        held = self._held(view)
        if held is None or held[1] != start.switch:
            # Light on another switch than was chosen is not of its giving.
            self._scheduler.complete(view.name, now)
        elif held != (start.job.group.ports, start.switch, tuple(sorted(start.pieces))):
            ports, _, pieces = held
            group = replace(self._group(view), ports=ports)
            self._scheduler.extend(replace(start.job, group=group), now, pieces)

    def _end_lease(self, view: PartView, now: float) -> None:
        if self._scheduler.light_of(view.name) is not None:
            self._scheduler.lease_end(view.name, now, self._remaining(view))

    def _begin(self, view: PartView, now: float) -> None:
        """Add a part to the policy that became pending, or that has a tree from elsewhere."""
        name = view.name
        if self._scheduler.waits(name) or self._scheduler.light_of(name) is not None:
            return
        held = self._held(view)
        if held is not None:
            ports, switch, pieces = held
            job = replace(self._job(view), group=replace(self._group(view), ports=ports), continues=True)
            self._scheduler.adopt(Start(job, switch, pieces, job.remaining, last=True))
        elif self._waits_for_policy(view):
            job = self._known_jobs[name] = self._job(view)
            self._scheduler.arrive(job, now)
        else:
            self._known_jobs.pop(name, None)

    def _waits_for_policy(self, view: PartView) -> bool:
        return view.part.state is PartState.PENDING and self.competes(view.request.current, view.part)

    def _held(self, view: PartView) -> tuple[int, str, Pieces] | None:
        """Return the ports and splitters that a part has of a switch; None if it has none."""
        if view.part.state not in (PartState.CONFIGURING, PartState.ACTIVE) or view.reservation is None:
            return None
        pieces = [piece for e in view.reservation.elements if (piece := self._inventory.offered_as(e)) is not None]
        ports = [piece for piece in pieces if isinstance(piece, OpticalPort)]
        if not ports:
            return None
        fan_out = sorted(piece.fan_out for piece in pieces if not isinstance(piece, OpticalPort))
        return bits(self._vertex(port.end) for port in ports), ports[0].switch, tuple(fan_out)

    # -------------------------------------------------------------------------------------- parts as jobs

    def competes(self, request: MulticastRequest, part: Part) -> bool:
        """Return true if a part needs an optical switch at all."""
        hosts = self._fabric.hosts
        sender = hosts[request.sender].rack
        return any(hosts[receiver].rack != sender for receiver in part.receivers)

    def receivers_of(self, start: Start, request: MulticastRequest, part: Part) -> tuple[str, ...]:
        """Return the receivers of a part that a start serves: those in its racks, and those in the sender's own."""
        racks = {self._racks[number] for number in racks_of(start.job.group.ports, len(self._racks))}
        return tuple(host for host in part.receivers if self._fabric.hosts[host].rack in racks)

    def _remaining(self, view: PartView) -> float:
        """Return the seconds of data at line rate that are still to be sent."""
        request = view.request.current
        return service_of(request, view.part, self._fabric)

    def _group(self, view: PartView) -> CompetingGroup:
        request = view.request.current
        edge = hyper_edge(request, view.part.receivers, self._fabric, self._orders.settings.loop_leaf)
        ports = self._vertices(self._numbers[edge.sender], [self._numbers[rack] for rack in edge.others])
        return CompetingGroup(request.id, ports, 1 + len(edge.others), edge.leaves, edge.volume, request.tenant)

    def _job(self, view: PartView) -> Job:
        request, part = view.request.current, view.part
        sender = 1 << self._numbers[self._fabric.hosts[request.sender].rack]
        received = view.request.received_at
        return Job(
            request=request.id,
            group=self._group(view),
            sender=sender,
            remaining=self._remaining(view),
            submitted_at=received,
            number=part.slot,
            parts=part.slots,
            deadline=None if request.deadline is None else received + request.deadline,
            priority=request.priority,
            may_pause=request.may_pause,
        )
