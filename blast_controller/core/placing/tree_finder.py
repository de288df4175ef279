"""The tree for a start: the one that was planned, one that is still lit, or one out of what is free."""

from __future__ import annotations

from collections.abc import Mapping

from algorithms.b_matching.residual import Choice
from algorithms.scheduling.selection import Start
from blast_controller.core.model.requests import Part, Request
from blast_controller.core.placing.kept_light import KeptLight
from blast_controller.core.placing.lighting import Lighting
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.light_plan import LightPlan, Planned
from blast_controller.core.rollout.reservation import Reservation


class TreeFinder:
    """Lights what it finds."""

    def __init__(self, plan: LightPlan, kept: KeptLight, layouts: LayoutPlanner, lighting: Lighting) -> None:
        self._plan, self._kept, self._layouts, self._lighting = plan, kept, layouts, lighting

    def light(self, request: Request, part: Part, start: Start, allowance: Mapping[str, int], now: float) -> bool:
        """Give a part what the policy has chosen for it; whether that was to be had."""
        planned = self._plan.take((request.current.id, part.slot))
        if planned is not None:
            return self._as_planned(request, part, planned, now)
        return self._again(request, part, start, allowance, now) or self._anew(request, part, start, now)

    def _as_planned(self, request: Request, part: Part, planned: Planned, now: float) -> bool:
        if planned.kept:
            kept = self._kept.find(request.current, part, {})
            if kept is None or kept.layout.tree is not planned.tree:
                return False
            return self._lighting.light_again(request, part, kept, now)
        return self._plan.is_free(planned) and self._lighting.light(request, part, planned.tree, now)

    def _anew(self, request: Request, part: Part, start: Start, now: float) -> bool:
        tree = self._layouts.tree_of(request.current, part.receivers, Choice(start.switch, start.pieces))
        return tree is not None and self._lighting.light(request, part, tree, now)

    def _again(self, request: Request, part: Part, start: Start, allowance: Mapping[str, int], now: float) -> bool:
        """Use the tree that an earlier transfer has left lit, if it is what the policy has in mind."""
        reservation = self._kept.find(request.current, part, allowance)
        if reservation is None or _pieces(reservation) != (start.switch, tuple(sorted(start.pieces))):
            return False
        return self._lighting.light_again(request, part, reservation, now)


def _pieces(reservation: Reservation) -> tuple[str, tuple[int, ...]]:
    tree = reservation.layout.tree
    return (tree.switch, tuple(sorted(h.splitter.ways for h in tree.splitters))) if tree is not None else ("", ())
