"""Construction of the core's parts. Each part receives only the parts that it uses."""

from __future__ import annotations

from blast_controller.core.applications import Applications, Extensions
from blast_controller.core.auditor import Auditor
from blast_controller.core.deadlines import LightDeadlines, RequestDeadlines
from blast_controller.core.durable import JournalWriter, Resumption, StateReader
from blast_controller.core.explaining.holdings import HeldResources
from blast_controller.core.explaining.prospect import TreeSizes
from blast_controller.core.explanation import Explainer
from blast_controller.core.fiber_check import FiberCheck
from blast_controller.core.fibers.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.addresses import GroupAddresses
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.links import Links
from blast_controller.core.lifecycle.admission_control import AdmissionControl
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.grants import Grants
from blast_controller.core.lifecycle.lifecycle import Failures, Granting, Lifecycle
from blast_controller.core.lifecycle.light_watch import LightRepair, LightWatch
from blast_controller.core.lifecycle.missing_light import MissingLight
from blast_controller.core.lifecycle.quarantine import Quarantine
from blast_controller.core.lifecycle.scheduled_checks import ScheduledChecks
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.settings import CoreSettings, StandingOrders
from blast_controller.core.model.timers import Timers
from blast_controller.core.placing.lighting import Lighting
from blast_controller.core.placing.part_views import ExpiredLeases, PartViews
from blast_controller.core.placing.placements import BudgetRefusals, LocalServing, Placements
from blast_controller.core.placing.tree_finder import TreeFinder, WarmTreeFinder
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.dispatcher import Dispatcher, PowerView
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.light_plan import LightPlan
from blast_controller.core.policy.optimizing import Optimizing
from blast_controller.core.policy.quota import Quota
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.policy.tree_planner import LightTreePlanner
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.late_writes import LateWrites
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.reconciliation import Reconciliation
from blast_controller.core.rollout.reservations import Reservations
from blast_controller.core.view import Checks, PolicyView, View


class CoreAssembly:
    """The parts of the core, each created after the parts that it uses."""

    def __init__(self, fabric: Fabric, settings: CoreSettings) -> None:
        self.orders = orders = StandingOrders(settings)
        self.timers = timers = Timers()
        self.outbox = outbox = Outbox()
        # Resources, requests and reservations.
        self.inventory = inventory = Inventory(fabric, settings.max_splitters_per_tree)
        links = Links(fabric)
        self.table = table = RequestTable(orders, outbox, timers)
        addresses = GroupAddresses(settings.group_network)
        self.reservations = reservations = Reservations(inventory, addresses, links, outbox)
        self.probes, self.late = ProbeCircuits(fabric, inventory, outbox), LateWrites(outbox)
        self.reconciliation = Reconciliation(reservations, outbox, self.probes, self.late)
        # Scheduling policy and power budget.
        self.budget, quota = LightBudget(fabric), Quota(orders.limits)
        self.agenda, self.optimizing = Agenda(), Optimizing(orders, outbox, timers)
        self.limits = SplitterLimits(orders, quota, reservations)
        self.warm = WarmTrees(inventory, reservations, timers, orders)
        planner = LightTreePlanner(fabric, inventory, orders, self.budget)
        self.layouts = LayoutPlanner(fabric, inventory, orders, planner)
        kept = WarmTreeFinder(table, self.warm, links, planner, self.layouts)
        plan = LightPlan(inventory, planner, kept.tree_for)
        self.dispatcher = Dispatcher(fabric, inventory, orders, self.optimizing, PowerView(self.budget, plan))
        # Lifecycle of parts.
        self.scheduled_checks = scheduled_checks = ScheduledChecks(timers, orders, self.late)
        self.quarantine = Quarantine(inventory, self.warm, outbox, self.agenda, table)
        missing = MissingLight(inventory, links, self.quarantine, table, reservations)
        repair = LightRepair(missing, self.layouts, table, reservations, scheduled_checks)
        self.watch = LightWatch(links, reservations, missing, repair, scheduled_checks)
        admission = AdmissionControl(fabric, inventory, orders, self.layouts, table)
        grants = Grants(fabric, orders, self.budget, table, reservations)
        endings = Endings(table, reservations, self.warm, quota, orders)
        granting = Granting(table, grants, quota, missing)
        failures = Failures(table, orders, admission, endings)
        self.lifecycle = Lifecycle(granting, failures, endings, repair, scheduled_checks)
        # From what the policy decides to light.
        lighting = Lighting(table, reservations, self.warm, self.layouts, self.lifecycle)
        self.views = PartViews(self.agenda, table, reservations)
        self.leases = ExpiredLeases(self.agenda, table, self.dispatcher, grants, endings)
        self.aside = LocalServing(self.layouts, self.dispatcher, lighting)
        finder = TreeFinder(plan, kept, self.layouts, self.limits, lighting)
        self.placements = Placements(table, self.dispatcher, finder, grants, self.agenda)
        self.refusals = BudgetRefusals(plan, table, self.layouts, endings, orders)
        # Requests of applications and deadlines.
        extensions = Extensions(reservations, self.layouts, self.limits, lighting)
        self.applications = Applications(table, admission, endings, extensions)
        self.request_deadlines = RequestDeadlines(table, reservations, self.views, endings, orders)
        self.light_deadlines = LightDeadlines(reservations, self.watch, self.lifecycle)
        # Checks of devices, fibers and journal.
        self.auditor = Auditor(fabric, inventory, self.reconciliation, outbox)
        self.fibers = FiberCheck(fabric, inventory, self.probes, outbox, scheduled_checks)
        self.writer = JournalWriter(table, reservations)
        self.reader = StateReader(fabric, inventory, table, reservations, self.writer)
        self.resumption = Resumption(table, reservations, self.agenda, self.warm, quota)
        # Views and explanations of the state.
        holdings = HeldResources(inventory, reservations, table)
        policy = PolicyView(self.dispatcher, self.agenda, quota, self.warm)
        self.view = View(holdings, links, timers, policy, Checks(self.auditor, self.fibers, self.probes, self.late))
        self.explainer = Explainer(holdings, orders, self.limits, TreeSizes(self.budget, orders), self.dispatcher)
