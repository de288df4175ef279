"""Finds light that is still on from an earlier request, for whoever may use it as it is."""

from __future__ import annotations

from collections.abc import Mapping

from algorithms.scheduling.job import PartName
from blast_controller.core.inventory.links import Links
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.model.requests import MulticastRequest, Part
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.policy.tree_planner import TreePlanner
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservation import Reservation


class KeptLight:
    """Looks at trees that are kept warm; takes none."""

    def __init__(
        self, table: RequestTable, warm: WarmTrees, links: Links, planner: TreePlanner, layouts: LayoutPlanner
    ) -> None:
        self._table, self._warm, self._links = table, warm, links
        self._planner, self._layouts = planner, layouts

    def tree_for(self, name: PartName) -> LightTree | None:
        """The tree that is still lit for exactly a part that waits."""
        try:
            request, part = self._table.named(name)
        except KeyError:
            return None
        kept = self.find(request.current, part, {})
        return kept.layout.tree if kept is not None else None

    def find(self, request: MulticastRequest, part: Part, allowance: Mapping[str, int]) -> Reservation | None:
        """The reservation whose tree may serve this part, with no more splitters than the tenant is allowed."""
        reservation = self._warm.find(request, part)
        tree = reservation.layout.tree if reservation is not None else None
        if tree is None or self._layouts.absent_datapaths(request, part.receivers):
            return None
        if not (self._planner.still_serves(tree) and self._links.are_up(leaf.port for leaf in tree.leaves)):
            return None
        most = allowance.get(request.tenant)
        return reservation if most is None or len(tree.splitters) <= most else None
