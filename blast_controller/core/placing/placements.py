"""Makes true what the policy decides: parts are split, lit, kept lit or refused; and serves who needs no policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from algorithms.leaf_assignment import Refusal
from algorithms.scheduling.job import PartName
from algorithms.scheduling.selection import Start
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.grants import Grants
from blast_controller.core.light.light_budget import described
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.requests import Part, Request
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.placing.lighting import Lighting
from blast_controller.core.placing.tree_finder import TreeFinder
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.dispatcher import Dispatcher, PartView
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.light_plan import LightPlan
from blast_controller.core.requests.request_table import RequestTable


class Placements:
    """Starts the parts that the policy has chosen."""

    def __init__(
        self, table: RequestTable, dispatcher: Dispatcher, finder: TreeFinder, grants: Grants, agenda: Agenda
    ) -> None:
        self._table, self._dispatcher, self._finder = table, dispatcher, finder
        self._grants, self._agenda = grants, agenda

    def start(self, start: Start, now: float) -> None:
        """Serve a part as the policy chose; if resources are missing, the part stays for the next decision."""
        request, part = self._table.named(start.job.name)
        if part.state is PartState.ACTIVE:
            part.chunk = None if start.last else start.seconds
            self._grants.go_on(request, part, now)
            return
        if part.state is not PartState.PENDING:
            return
        before, part.chunk = part.chunk, None if start.last else start.seconds
        if start.rest is not None:
            kept = self._dispatcher.receivers_of(start, request.current, part)
            self._table.split(request, part, kept, start.job.parts)
        if not self._finder.light(request, part, start, now):
            self._agenda.look_again([request.current.id])
        if part.state is PartState.PENDING:
            part.chunk = before


class BudgetRefusals:
    """Parts for which the last decision found no tree within the power budget."""

    def __init__(
        self, plan: LightPlan, table: RequestTable, layouts: LayoutPlanner, endings: Endings, orders: StandingOrders
    ) -> None:
        self._plan, self._table, self._layouts = plan, table, layouts
        self._endings, self._orders = endings, orders

    def publish(self, now: float) -> bool:
        """Publish the reasons, and end parts that no resource could serve. Return true if there were such parts."""
        ended = False
        for name, refusal in self._plan.refused.items():
            request, part = self._table.named(name)
            if part.state is PartState.PENDING:
                ended |= self._refuse(request, part, refusal, now)
        return ended

    def _refuse(self, request: Request, part: Part, refusal: Refusal, now: float) -> bool:
        limit = self._orders.limits(request.current.tenant).max_splitters
        try:
            self._layouts.check_light(request.current, part.receivers, limit)
        except RejectedError as never:
            self._endings.end(request, part, PartEvent.GIVEN_UP, never.sentence, now)
            return True
        self._table.explain(request, part, f"with the free resources {described(refusal)}")
        return False


class LocalServing:
    """Serves groups within one rack and by static trees: they use no shared optical resources."""

    def __init__(self, layouts: LayoutPlanner, dispatcher: Dispatcher, lighting: Lighting) -> None:
        self._layouts, self._dispatcher, self._lighting = layouts, dispatcher, lighting
        self._aside: dict[PartName, PartView] = {}

    def serve(self, views: Iterable[PartView], limits: Mapping[str, int], now: float) -> list[PartView]:
        """Serve these parts, and earlier ones that wait for their ToRs or static trees, where possible.

        Return the parts served.
        """
        for view in [view for view in views if view.part.state is PartState.PENDING]:
            requested, part = view.request.current, view.part
            if self._layouts.has_static(requested, part.receivers) or not self._dispatcher.competes(requested, part):
                self._aside[view.name] = view
        lit: list[PartView] = []
        for view in list(self._aside.values()):
            if view.part.state is not PartState.PENDING:
                del self._aside[view.name]
            elif not self._layouts.absent_datapaths(view.request.current, view.part.receivers):
                self._serve_alone(view, limits, now)
                lit += [view] if view.part.state is not PartState.PENDING else []
        return lit

    def _serve_alone(self, view: PartView, limits: Mapping[str, int], now: float) -> None:
        request, part = view.request, view.part
        if not self._dispatcher.competes(request.current, part):
            self._lighting.light(request, part, None, now)
        elif limits.get(request.current.tenant, 0) >= 0:
            tree = self._layouts.static_for(request.current, part.receivers)
            if tree is not None:
                self._lighting.light(request, part, tree, now)
