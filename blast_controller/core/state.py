"""Everything the core knows, in one place for the parts of it that decide."""

from __future__ import annotations

from blast_controller.core.appointments import Appointments
from blast_controller.core.auditor import Auditor
from blast_controller.core.fibres.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.addresses import GroupAddresses
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.links import Links
from blast_controller.core.kept_light import KeptLight
from blast_controller.core.light.fault_localizer import FaultLocalizer
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import ElementId, is_static
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import Part, Request
from blast_controller.core.model.settings import CoreSettings, StandingOrders
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
        self.orders = StandingOrders(settings)
        self.timers = Timers()
        self.appointments = Appointments(self.timers)
        self.outbox = Outbox()
        self.inventory = Inventory(fabric, settings.most_splitters)
        self.addresses = GroupAddresses(settings.group_network)
        self.links = Links(fabric)
        self.table = RequestTable(self.orders, self.outbox, self.timers)
        self.reservations = Reservations(self.inventory, self.addresses, self.links, self.outbox)
        self.optimising = Optimising(self.orders, self.outbox, self.timers)
        self.budget = LightBudget(fabric)
        self.next_decision = Agenda()
        self.warm = WarmTrees(self.inventory, self.reservations, self.timers, self.orders)
        planner = TreePlanner(fabric, self.inventory, self.orders, self.budget)
        self.layout_planner = LayoutPlanner(fabric, self.inventory, self.orders, planner)
        self.kept = KeptLight(self.table, self.warm, self.links, planner, self.layout_planner)
        self.plan = LightPlan(self.inventory, planner, self.budget, self.kept.tree_for)
        light = Light(self.budget, self.plan)
        self.dispatcher = Dispatcher(fabric, self.inventory, self.orders, self.optimising, light)
        self.quota = Quota(self.orders.limits)
        self.splitter_limits = SplitterLimits(self.orders, self.quota, self.reservations)
        self.localizer = FaultLocalizer()
        self.probes = ProbeCircuits(fabric, self.inventory, self.outbox)
        self.reconciliation = Reconciliation(self.reservations, self.outbox)
        self.auditor = Auditor(fabric, self.inventory, self.reconciliation, self.outbox, self.probes)

    def change_settings(self, settings: CoreSettings, now: float) -> None:
        """Go by these settings from the next decision on."""
        every_before = self.orders.settings.reconcile_every
        self.orders.settings = settings
        self.dispatcher.begin_anew()
        self.inventory.offer_anew()
        self.inventory.unsettle()
        self.next_decision.look_again(self.table.requests)
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
