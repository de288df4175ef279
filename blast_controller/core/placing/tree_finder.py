"""The tree for a start: the one that was planned, one that is still lit, or one out of what is free."""

from __future__ import annotations

from algorithms.b_matching.residual import Choice
from algorithms.scheduling.job import PartName
from algorithms.scheduling.selection import Start
from blast_controller.core.inventory.links import Links
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.model.requests import MulticastRequest, Part, Request
from blast_controller.core.placing.lighting import Lighting
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.light_plan import LightPlan, Planned
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.policy.tree_planner import LightTreePlanner
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservation import Reservation


class WarmTreeFinder:
    """Finds light that is still on from an earlier request; takes none."""

    def __init__(
        self, table: RequestTable, warm: WarmTrees, links: Links, planner: LightTreePlanner, layouts: LayoutPlanner
    ) -> None:
        self._table, self._warm, self._links = table, warm, links
        self._planner, self._layouts = planner, layouts

    def tree_for(self, name: PartName) -> LightTree | None:
        """Return the warm tree of a pending part, if it matches exactly."""
        try:
            request, part = self._table.named(name)
        except KeyError:
            return None
        kept = self.find(request.current, part)
        return kept.layout.tree if kept is not None else None

    def find(self, request: MulticastRequest, part: Part) -> Reservation | None:
        """Return the reservation whose tree may serve this part."""
        reservation = self._warm.find(request, part)
        tree = reservation.layout.tree if reservation is not None else None
        if tree is None or self._layouts.absent_datapaths(request, part.receivers):
            return None
        serves = self._planner.still_serves(tree) and self._links.are_up(leaf.port for leaf in tree.leaves)
        return reservation if serves else None


class TreeFinder:
    """Looks for the tree that the policy has in mind, and has it lit."""

    def __init__(
        self, plan: LightPlan, kept: WarmTreeFinder, layouts: LayoutPlanner, limits: SplitterLimits, lighting: Lighting
    ) -> None:
        self._plan, self._kept, self._layouts = plan, kept, layouts
        self._limits, self._lighting = limits, lighting

    def light(self, request: Request, part: Part, start: Start, now: float) -> bool:
        """Give a part what the policy chose for it; return true if that was available."""
        planned = self._plan.take((request.current.id, part.slot))
        if planned is not None:
            return self._as_planned(request, part, planned, now)
        return self._again(request, part, start, now) or self._search(request, part, start, now)

    def _as_planned(self, request: Request, part: Part, planned: Planned, now: float) -> bool:
        if planned.kept:
            kept = self._kept.find(request.current, part)
            if kept is None or kept.layout.tree is not planned.tree:
                return False
            return self._lighting.light_again(request, part, kept, now)
        return self._plan.is_free(planned) and self._lighting.light(request, part, planned.tree, now)

    def _search(self, request: Request, part: Part, start: Start, now: float) -> bool:
        tree = self._layouts.tree_of(request.current, part.receivers, Choice(start.switch, start.pieces))
        return tree is not None and self._lighting.light(request, part, tree, now)

    def _again(self, request: Request, part: Part, start: Start, now: float) -> bool:
        """Use the tree that an earlier transfer has left lit, if it is what the policy has in mind."""
        reservation = self._kept.find(request.current, part)
        if reservation is None or _pieces(reservation) != (start.switch, tuple(sorted(start.pieces))):
            return False
        if not self._limits.allow(request.current.tenant, len(start.pieces), now):
            return False
        return self._lighting.light_again(request, part, reservation, now)


def _pieces(reservation: Reservation) -> tuple[str, tuple[int, ...]]:
    tree = reservation.layout.tree
    return (tree.switch, tuple(sorted(h.splitter.fan_out for h in tree.splitters))) if tree is not None else ("", ())
