"""Which splitters make trees of which size."""

from __future__ import annotations

from collections.abc import Mapping

from algorithms.b_matching.feasibility import Feasibility
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.hyper_edge import leaves_of
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.settings import StandingOrders


class TreeSizes:
    """Counts; under a power budget what it says is so for ordinary racks, and weak ones may need other splitters."""

    def __init__(self, budget: LightBudget, orders: StandingOrders) -> None:
        self._budget, self._orders = budget, orders

    def leaves(self, racks: int) -> int:
        """How many ends a tree to so many racks has, the sender's not counted."""
        return leaves_of(racks, self._orders.settings.loop_leaf)

    def fits(self, racks: int, switch: SwitchId, pool: Mapping[int, int], most: int | None) -> bool:
        """Whether these splitters of a switch, `most` of them at most, join so many racks to the sender's."""
        limits = [number for number in (self._orders.settings.most_splitters, most) if number is not None]
        choose = self._budget.choose(switch, min(limits, default=None))
        return Feasibility((), pool, choose).splitters(self.leaves(racks)) is not None
