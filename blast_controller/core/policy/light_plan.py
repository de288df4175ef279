"""Planning of the elements that the starts of one decision take, where splitters of a size differ.

The policy counts resources as if the elements of every expired lease were free. Trees are planned from the same set:
available elements first, those of expired leases last, without the elements of earlier starts of the decision. A part
continues with its tree only if no other start took elements of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from algorithms.b_matching.residual import Choice
from algorithms.leaf_assignment import Refusal
from algorithms.scheduling.job import PartName
from algorithms.scheduling.placing import Placement, PlacementTerms, Unplaced
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.fabric import OpticalPort, Splitter
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.policy.tree_planner import LightTreePlanner, TreeResources

Ends = tuple[str, tuple[str, ...]]
"""The rack that sends, and the other racks that receive."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The tree of a start; `kept`: it is still lit from an earlier request."""

    tree: LightTree
    kept: bool


class LightPlan:
    """The elements that the starts of the current decision take. `find_kept` finds a part's warm tree.

    `refused` has the reason, by part, why no tree of the free resources suffices.
    """

    def __init__(
        self,
        inventory: Inventory,
        planner: LightTreePlanner,
        find_kept: Callable[[PartName], LightTree | None],
    ) -> None:
        self.refused: dict[PartName, Refusal] = {}
        self._inventory = inventory
        self._planner = planner
        self._find_kept = find_kept
        self._planned: dict[PartName, Planned] = {}
        self._taken: set[ElementId] = set()
        self._over: Mapping[PartName, frozenset[ElementId]] = {}
        self._given_back: frozenset[ElementId] = frozenset()
        self._resources = (
            TreeResources(self._dark_ports, self._splitters),
            TreeResources(self._ports, self._splitters),
        )

    def begin(self, over: Mapping[PartName, frozenset[ElementId]]) -> None:
        """Begin a decision with these expired leases and their elements."""
        self.refused.clear()
        self._planned.clear()
        self._taken.clear()
        self._over, self._given_back = over, frozenset[ElementId]().union(*over.values())

    def take(self, name: PartName) -> Planned | None:
        """Return the plan of a start; None if splitters of a size are equal and any free ones suffice."""
        return self._planned.pop(name, None)

    def is_free(self, planned: Planned) -> bool:
        """Return true if all planned elements are available now."""
        return all(self._inventory.is_available(element) for element in planned.tree.elements)

    # ----------------------------------------------------------------------------------------- what is asked

    def place(self, name: PartName, ends: Ends, terms: PlacementTerms) -> Placement | Unplaced:
        """Plan a tree on a switch with a power budget, with the terms of the policy."""
        planned = self._kept(name, ends, terms) or self._build(name, ends, terms)
        if planned is None:
            return Unplaced(self._tenant_stops(ends, terms))
        self._planned[name] = planned
        self._taken |= planned.tree.elements
        self.refused.pop(name, None)
        return Placement(tuple(sorted(hung.splitter.fan_out for hung in planned.tree.splitters)))

    def has_kept(self, name: PartName) -> bool:
        """Return true if no other start took elements of an expired lease."""
        return self._taken.isdisjoint(self._over.get(name, ()))

    def keep(self, name: PartName) -> None:
        """Let a part continue with its elements."""
        self._taken |= self._over.get(name, frozenset())

    # --------------------------------------------------------------------------------------------- planning

    def _kept(self, name: PartName, ends: Ends, terms: PlacementTerms) -> Planned | None:
        """Return the group's warm tree, if it matches the policy's choice."""
        tree = self._find_kept(name)
        if tree is None or tree.switch != terms.switch or not self._taken.isdisjoint(tree.elements):
            return None
        racks = {leaf.port.rack for leaf in tree.leaves} - {tree.root.rack}
        fan_out = sorted(hung.splitter.fan_out for hung in tree.splitters)
        same = tree.root.rack == ends[0] and racks == set(ends[1]) and fan_out == sorted(terms.pieces)
        return Planned(tree, kept=True) if same else None

    def _build(self, name: PartName, ends: Ends, terms: PlacementTerms) -> Planned | None:
        max_splitters = None if terms.max_splitters == math.inf else int(terms.max_splitters)
        for resources in self._resources:
            found = self._tree(resources, ends, terms, max_splitters)
            if isinstance(found, LightTree):
                return Planned(found, kept=False)
            self.refused[name] = found
        return None

    def _tenant_stops(self, ends: Ends, terms: PlacementTerms) -> bool:
        if terms.max_splitters == math.inf or terms.only:
            return False
        return isinstance(self._tree(self._resources[-1], ends, terms, None), LightTree)

    def _tree(
        self, resources: TreeResources, ends: Ends, terms: PlacementTerms, max_splitters: int | None
    ) -> LightTree | Refusal:
        choice = Choice(terms.switch, terms.pieces)
        try:
            return self._planner.placed(resources, ends, choice, not terms.only, max_splitters)
        except (RejectedError, LookupError) as error:
            return Refusal(str(error))

    # ------------------------------------------------------------------------------------------ what is free

    def _splitters(self, switch: SwitchId) -> list[Splitter]:
        available = self._without_taken(self._inventory.available_splitters(switch))
        if not self._given_back:
            return available
        usable = self._without_taken(self._inventory.usable_splitters(switch))
        return available + [splitter for splitter in usable if splitter.element in self._given_back]

    def _without_taken(self, splitters: Iterable[Splitter]) -> list[Splitter]:
        return [splitter for splitter in splitters if splitter.element not in self._taken]

    def _ports(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        return [port for port in self._inventory.ports_for(end, switch) if self._is_free(port.element)]

    def _dark_ports(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        """Return the ports that need no eviction, or all if there are none."""
        found = self._ports(end, switch)
        dark = [port for port in found if port.element not in self._given_back]
        return [port for port in dark if not self._inventory.is_kept_lit(port.element)] or found

    def _is_free(self, element: ElementId) -> bool:
        if element in self._taken:
            return False
        given_back = element in self._given_back and self._inventory.is_usable(element)
        return given_back or self._inventory.is_available(element)
