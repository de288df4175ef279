"""Everything the core knows, in one place for the parts of it that decide."""

from __future__ import annotations

from algorithms.scheduling.job import PartName
from blast_controller.core.appointments import Appointments
from blast_controller.core.auditor import Auditor
from blast_controller.core.fibres.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.addresses import GroupAddresses
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.links import Links
from blast_controller.core.light.fault_localizer import FaultLocalizer
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import ElementId, is_static
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import Part, Request
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.model.timers import Timers
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.dispatcher import Dispatcher, Light, PartView
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.light_plan import LightPlan
from blast_controller.core.policy.optimising import Optimising
from blast_controller.core.policy.quota import Quota
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.policy.tree_planner import TreePlanner
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.reconciliation import Reconciliation
from blast_controller.core.rollout.reservations import Reservations


class State:
    """Who asked, who holds what, what was dark, and what is to be done.

    `next_decision` is what that looks at besides what has changed of requests.
    """

    def __init__(self, fabric: Fabric, settings: CoreSettings) -> None:
        self.fabric = fabric
        self.settings = settings
        self.draining = False
        self.timers = Timers()
        self.appointments = Appointments(self.timers)
        self.outbox = Outbox()
        self.inventory = Inventory(fabric, settings.most_splitters)
        self.addresses = GroupAddresses(settings.group_network)
        self.links = Links(fabric)
        self.table = RequestTable(settings, self.outbox, self.timers)
        self.reservations = Reservations(self.inventory, self.addresses, self.links, self.outbox)
        self.optimising = Optimising(settings.optimise, self.outbox, self.timers)
        self.budget = LightBudget(fabric)
        self.dispatcher = self._new_dispatcher()
        self.next_decision = Agenda()
        self.warm = WarmTrees(self.inventory, self.reservations, self.timers, settings)
        self.layout_planner = LayoutPlanner(fabric, self.inventory, self.links, settings, self.budget)
        self.quota = Quota(settings.limits)
        self.splitter_limits = SplitterLimits(settings, self.quota, self.reservations)
        self.localizer = FaultLocalizer()
        self.probes = ProbeCircuits(fabric, self.inventory, self.outbox)
        self.reconciliation = Reconciliation(self.reservations, self.outbox)
        self.auditor = Auditor(fabric, self.inventory, self.reconciliation, self.outbox, self.probes)

    def _new_dispatcher(self) -> Dispatcher:
        planner = TreePlanner(self.fabric, self.inventory, self.settings, self.budget)
        self.plan = LightPlan(self.inventory, planner, self.budget, self._kept_for)
        light = Light(self.budget, self.plan)
        return Dispatcher(self.fabric, self.inventory, self.settings, self.optimising, light)

    def _kept_for(self, name: PartName) -> LightTree | None:
        """The tree that is still lit for exactly a part that waits."""
        request = next((self.table.requests[key] for key in [name[0]] if key in self.table.requests), None)
        part = next((part for part in request.parts if part.slot == name[1]), None) if request is not None else None
        if request is None or part is None:
            return None
        kept = self.layout_planner.kept_for(request.current, part, self.warm, {})
        return kept.layout.tree if kept is not None else None

    def change_settings(self, settings: CoreSettings, now: float) -> None:
        """Go by these settings from the next decision on."""
        every_before = self.settings.reconcile_every
        self.settings = self.table.settings = self.warm.settings = self.splitter_limits.settings = settings
        self.layout_planner = LayoutPlanner(self.fabric, self.inventory, self.links, settings, self.budget)
        self.optimising.budget = settings.optimise
        self.dispatcher = self._new_dispatcher()
        self.inventory.offer_anew()
        self.inventory.unsettle()
        self.next_decision.look_again(self.table.requests)
        self.quota.limits = settings.limits
        if settings.reconcile_every != every_before:
            self.appointments.audit(settings.reconcile_every, now)

    def part_view(self, request: Request, part: Part) -> PartView:
        """A part with what it holds."""
        return PartView(request, part, self.reservations.live.get(part.reservation or 0))

    def quarantine(self, element: ElementId, reason: str | None) -> None:
        """Take an element out of use for this reason, or (None) bring it back."""
        if reason is not None:
            for number in self.inventory.keepers_of([element]):
                self.warm.give_up(number)
            self.inventory.quarantine(element, reason)
            self.outbox.record(Record("element", element, {"reason": reason}, note="quarantined"))
        elif self.inventory.lift_quarantine(element):
            self.outbox.record(Record("element", element, None, note="released"))
            if is_static(element):
                # The policy hears of ports and splitters that come free, but knows of no static tree.
                self.next_decision.look_again(key for key, _ in self.table.pending)
