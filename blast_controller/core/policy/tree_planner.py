"""Which splitters and ports a tree is made of, and where it may grow: with a power budget, where the switch has one.

Where it has none, splitters only count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from algorithms.b_matching.feasibility import Pieces
from algorithms.b_matching.residual import Choice
from algorithms.leaf_assignment import Refusal
from algorithms.power_budget import Certificate
from algorithms.splitter_tree import choose_splitters
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.budgeted_tree import TreeEnds
from blast_controller.core.light.light_budget import LightBudget, described
from blast_controller.core.light.light_tree import LightTree, build, good_outputs, grow, rehang
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.fabric import Fabric, OpticalPort, Splitter, rack_of
from blast_controller.core.model.hyper_edge import leaves_of
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.settings import StandingOrders


@dataclass(frozen=True, slots=True)
class TreeResources:
    """The resources for trees: ports for an end on a switch, and the splitters of a switch, best first."""

    ports: Callable[[str, SwitchId], list[OpticalPort]]
    splitters: Callable[[SwitchId], list[Splitter]]


class LightTreePlanner:
    """Plans trees from a rack (`root`) to other racks. Reads the inventory, changes nothing."""

    def __init__(self, fabric: Fabric, inventory: Inventory, orders: StandingOrders, budget: LightBudget) -> None:
        self._fabric = fabric
        self._inventory = inventory
        self._orders = orders
        self._budget = budget
        self._free = TreeResources(inventory.available_ports, inventory.available_splitters)
        self._usable = TreeResources(inventory.usable_ports, inventory.usable_splitters)

    # ---------------------------------------------------------------------------------------------- new trees

    def matched(self, root: str, racks: Sequence[str], choice: Choice) -> LightTree:
        """Return a tree of free splitters of the sizes that the matching chose.

        Its switch has no power budget, so that only the number of splitters of each size matters. Raises RejectedError
        or LookupError if these splitters, or ports, are not available after all.
        """
        switch = SwitchId(choice.switch)
        if switch in self._inventory.away:
            raise RejectedError(
                "device_disconnected", f"The optical switch {switch} is disconnected ({self._inventory.away[switch]})."
            )
        ends = self._ends(self._free, switch, root, racks)
        taken = self._inventory.choose_splitters(switch, choice.fan_out)
        return build(ends.root, ends.receivers, taken, ends.loop_leaf)

    def placed(
        self,
        resources: TreeResources,
        ends: tuple[str, Sequence[str]],
        choice: Choice,
        others: bool,
        max_splitters: int | None,
    ) -> LightTree | Refusal:
        """Return the tree between `ends` (root, other racks) of splitters of the chosen sizes.

        With `others`, splitters of all sizes may be used. Raises RejectedError or LookupError if the chosen splitters,
        or ports, are not available after all.
        """
        switch = SwitchId(choice.switch)
        splitters = resources.splitters(switch)
        taken = _taken(splitters, choice.fan_out)
        limits = [
            number for number in (max_splitters, self._orders.settings.max_splitters_per_tree) if number is not None
        ]
        hung = self._ends(resources, switch, *ends)
        return self._tree(hung, taken, splitters if others else taken, min(limits, default=None))

    def anywhere(self, root: str, racks: Sequence[str], max_splitters: int | None) -> LightTree | Refusal | None:
        """Return a tree of free resources on any switch, with at most `max_splitters` splitters.

        None where ports or splitters lack by their number alone.
        """
        return self._first(self._free, root, racks, max_splitters)

    def refusal(self, root: str, racks: Sequence[str], max_splitters: int | None) -> Refusal | None:
        """Return why the power budget allows no tree even without any holders; None if it allows one."""
        if not self._fabric.optics.passes:
            return None
        found = self._first(self._usable, root, racks, max_splitters)
        return found if isinstance(found, Refusal) else None

    def _first(
        self, resources: TreeResources, root: str, racks: Sequence[str], max_splitters: int | None
    ) -> LightTree | Refusal | None:
        refusals: list[Refusal] = []
        for switch in self._fabric.switches:
            found = self._on(resources, switch, root, racks, max_splitters)
            if isinstance(found, LightTree):
                return found
            refusals += [found] if found is not None else []
        return max(refusals, key=lambda refusal: refusal.binding is not None, default=None)

    def _on(
        self, resources: TreeResources, switch: SwitchId, root: str, racks: Sequence[str], max_splitters: int | None
    ) -> LightTree | Refusal | None:
        try:
            ends = self._ends(resources, switch, root, racks)
        except RejectedError:
            return None
        splitters = resources.splitters(switch)
        limits = [
            number for number in (max_splitters, self._orders.settings.max_splitters_per_tree) if number is not None
        ]
        limit = min(limits, default=None)
        pieces = self._pieces(ends, splitters, limit)
        if pieces is None and not self._budget.covers(switch):
            return None
        return self._tree(ends, _taken(splitters, pieces or ()), splitters, limit)

    def _pieces(self, ends: TreeEnds, splitters: Sequence[Splitter], max_splitters: int | None) -> Pieces | None:
        leaves = leaves_of(len(ends.receivers), ends.loop_leaf)
        pool = Counter(splitter.fan_out for splitter in splitters)
        return () if leaves <= 1 else self._budget.choose(ends.root.switch, max_splitters)(leaves, pool)

    def _tree(
        self, ends: TreeEnds, matched: Sequence[Splitter], others: Sequence[Splitter], max_splitters: int | None
    ) -> LightTree | Refusal:
        if not self._budget.covers(ends.root.switch):
            return build(ends.root, ends.receivers, matched, ends.loop_leaf)
        found = self._budget.tree(ends, matched, others, max_splitters)
        return found if isinstance(found, Refusal) else found.tree

    # ------------------------------------------------------------------------------------------------- ports

    def _ends(self, resources: TreeResources, switch: SwitchId, root: str, racks: Sequence[str]) -> TreeEnds:
        ports = self._ports(resources, self._fabric.root_end(root), switch)
        sender = self._budget.brightest(ports) if self._budget.covers(switch) else ports[0]
        receivers = (self._receiver(resources, rack, switch) for rack in racks)
        return TreeEnds(sender, tuple(receivers), self._orders.settings.loop_leaf)

    def _receiver(self, resources: TreeResources, rack: str, switch: SwitchId) -> OpticalPort:
        ports = self._ports(resources, self._fabric.leaf_end(rack), switch)
        return self._budget.neediest_first(ports)[-1] if self._budget.covers(switch) else ports[0]

    def _ports(self, resources: TreeResources, end: str, switch: SwitchId) -> list[OpticalPort]:
        ports = resources.ports(end, switch)
        if not ports:
            raise RejectedError("no_port", f"The rack {rack_of(end)} has no free optical port on {switch}.")
        return ports

    # ------------------------------------------------------------------------------------------- lit trees

    def still_serves(self, tree: LightTree) -> bool:
        """Return true if a tree's switch is connected and each of its leaves is within the power budget."""
        return tree.switch not in self._inventory.away and not self._budget.shortfalls(tree)

    def grown(self, tree: LightTree, racks: Sequence[str]) -> LightTree:
        """Return the tree with leaves for more racks, without moving lit leaves. Raises RejectedError."""
        if tree.switch in self._inventory.away:
            reason = self._inventory.away[tree.switch]
            raise RejectedError("device_disconnected", f"The optical switch {tree.switch} is disconnected ({reason}).")
        ports = [self._receiver(self._free, rack, tree.switch) for rack in racks]
        if self._budget.covers(tree.switch):
            ports = self._budget.neediest_first(ports)
        bad = self._inventory.bad_outputs(hung.splitter for hung in tree.splitters)
        short: list[Certificate] = []
        for fan_out in self._additions(tree, len(ports), bad):
            taken = self._inventory.choose_splitters(tree.switch, fan_out)
            found = self._with_light(partial(grow, tree, ports, taken), {port.element for port in ports}, bad)
            if isinstance(found, LightTree):
                return found
            short += [found] if found is not None else []
        if short:
            clause = described(Refusal(short[0].sentence, short[0]))
            raise RejectedError(
                "power_budget", f"No free output of the light tree meets the power budget of the new racks: {clause}."
            )
        raise RejectedError(
            "no_free_output",
            "The light tree has no free splitter output for the new racks, and moving lit receivers would lose "
            "their packets; finish this request and submit a new one for the larger group.",
        )

    def _additions(self, tree: LightTree, leaves: int, bad: Collection[int]) -> Iterator[Pieces]:
        """Yield splitters to try, sufficient in number first."""
        limit = self._orders.settings.max_splitters_per_tree
        allowed = None if limit is None else limit - len(tree.splitters)
        free = self._inventory.available.sizes(tree.switch)
        counted = choose_splitters(leaves, free, allowed, len(good_outputs(tree, bad)))
        if counted is not None:
            yield counted
        if self._budget.covers(tree.switch) and (allowed is None or allowed > 0):
            yield from ((fan_out,) for fan_out in sorted(free) if (fan_out,) != counted)

    def mended(self, tree: LightTree, outputs: Collection[int]) -> LightTree | None:
        """Return the tree with the leaves at these switch outputs moved to other outputs; None if none fit."""
        bad = self._inventory.bad_outputs(hung.splitter for hung in tree.splitters)
        moved = {leaf.port.element for leaf in tree.leaves if leaf.port.output in outputs}
        found = self._with_light(partial(rehang, tree, outputs), moved, bad)
        return found if isinstance(found, LightTree) else None

    def _with_light(
        self, hang: Callable[[Collection[int]], LightTree | None], fresh: Collection[str], bad: Collection[int]
    ) -> LightTree | Certificate | None:
        """Return the result of `hang` without outputs at which its `fresh` leaves fail the power budget.

        Bad outputs are not used either. If no output remains, return the budget of such a leaf; None if there are too
        few outputs.
        """
        avoided, first = set(bad), None
        while (tree := hang(avoided)) is not None:
            short = {element: found for element, found in self._budget.shortfalls(tree).items() if element in fresh}
            if not short:
                return tree
            first = first or min(short.values(), key=lambda found: found.margin)
            avoided |= {leaf.feed for leaf in tree.leaves if leaf.port.element in short}
        return first


def _taken(splitters: Sequence[Splitter], pieces: Pieces) -> list[Splitter]:
    """Return the first splitters of these sizes."""
    left = {fan_out: iter([s for s in splitters if s.fan_out == fan_out]) for fan_out in set(pieces)}
    found = [splitter for fan_out in pieces for splitter in [next(left[fan_out], None)] if splitter is not None]
    if len(found) < len(pieces):
        raise LookupError(f"no splitters of sizes {sorted(pieces)} are free at the same time")
    return found
