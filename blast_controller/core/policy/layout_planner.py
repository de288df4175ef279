"""From what the policy chose to what devices are to do: trees, forwards and group address of a part, planned only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from algorithms.b_matching.residual import Choice
from algorithms.leaf_assignment import Refusal
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.forwarding import forwards_for
from blast_controller.core.light.layout import Layout
from blast_controller.core.light.light_budget import described
from blast_controller.core.light.light_tree import LightTree, prune
from blast_controller.core.light.static_tree import StaticLight, covers, light_of
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.fabric import Fabric, Host, rack_of
from blast_controller.core.model.hyper_edge import group_of, other_racks
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.tree_planner import LightTreePlanner


class LayoutPlanner:
    """Turns the policy's choices into layouts. Reads the inventory and takes nothing from it."""

    def __init__(self, fabric: Fabric, inventory: Inventory, orders: StandingOrders, planner: LightTreePlanner) -> None:
        self._fabric = fabric
        self._inventory = inventory
        self._orders = orders
        self._planner = planner

    def tree_of(self, request: MulticastRequest, receivers: Sequence[str], choice: Choice) -> LightTree | None:
        """Return the tree for a part with the splitters that the policy chose, or None if they are not available.

        This happens if an evicted tree held more of the counted pieces.
        """
        try:
            return self._planner.matched(*self._racks_of(request, receivers), choice)
        except (RejectedError, LookupError):
            return None

    def tree_of_any(
        self, request: MulticastRequest, receivers: Sequence[str], max_splitters: int | None
    ) -> LightTree | Refusal | None:
        """Return a tree for a part from all free resources, with at most `max_splitters` splitters, or None."""
        return self._planner.anywhere(*self._racks_of(request, receivers), max_splitters)

    def check_light(self, request: MulticastRequest, receivers: Sequence[str], max_splitters: int | None) -> None:
        """Raise RejectedError unless the power budget allows a tree without any other holders."""
        root, racks = self._racks_of(request, receivers)
        refusal = self._planner.refusal(root, racks, max_splitters) if racks else None
        if refusal is not None:
            raise RejectedError(
                "power_budget",
                f"No tree of this fabric meets the power budget of each receiver: {described(refusal)}.",
            )

    def mended(self, tree: LightTree, outputs: Collection[int]) -> LightTree | None:
        """Return the tree with the leaves at these switch outputs moved to other outputs; None if none fit."""
        return self._planner.mended(tree, outputs)

    def layout(self, request: MulticastRequest, receivers: Sequence[str], tree: LightTree | None, group: str) -> Layout:
        """Return a tree with the forwards that these receivers need."""
        hosts = self._fabric.hosts
        forwards = forwards_for(self._fabric, hosts[request.sender], [hosts[name] for name in receivers], tree, group)
        return Layout(tuple(receivers), tree, forwards)

    def has_static(self, request: MulticastRequest, receivers: Sequence[str]) -> bool:
        """Return true if a static tree, in use or not, could serve these receivers."""
        if not self._fabric.static_trees:
            return False
        sender, members = self._hosts(request, receivers)
        return any(covers(tree, sender, members) for tree in self._inventory.usable_static())

    def static_for(self, request: MulticastRequest, receivers: Sequence[str]) -> StaticLight | None:
        """Return a free static tree for these receivers. It uses no shared resources, so it is taken at once."""
        sender, members = self._hosts(request, receivers)
        tree = next((t for t in self._inventory.available_static() if covers(t, sender, members)), None)
        return None if tree is None else light_of(tree, sender, members)

    def _hosts(self, request: MulticastRequest, receivers: Sequence[str]) -> tuple[Host, list[Host]]:
        return self._fabric.hosts[request.sender], [self._fabric.hosts[name] for name in receivers]

    def _racks_of(self, request: MulticastRequest, receivers: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return the rack that sends, and the others that receive."""
        root = self._fabric.hosts[request.sender].rack
        return root, other_racks(root, receivers, self._fabric)

    # ------------------------------------------------------------------------------------------ extension

    def extended(self, layout: Layout, request: MulticastRequest, group: str) -> Layout:
        """Return the layout for `request`'s receivers, grown from `layout` without moving lit leaves.

        Raises RejectedError if there is no such layout.
        """
        if self.absent_datapaths(request, request.receivers):
            raise RejectedError("device_disconnected", f"{self.absent_datapaths(request, request.receivers)[0]}.")
        _, racks = self._racks_of(request, request.receivers)
        old = layout.tree
        if isinstance(old, StaticLight):
            return self.layout(request, request.receivers, self._extended_static(old, request), group)
        if old is None:
            tree = self._first_tree(request) if racks else None
        else:
            added = [rack for rack in racks if old.leaf_of(rack) is None]
            grown = self._planner.grown(old, added) if added else old
            removed = {leaf.port.rack for leaf in old.leaves} - set(racks) - {old.root.rack}
            tree = prune(grown, removed) if racks else None
        return self.layout(request, request.receivers, tree, group)

    def _extended_static(self, old: StaticLight, request: MulticastRequest) -> StaticLight:
        tree = self._fabric.static_trees[old.name]
        sender, members = self._hosts(request, request.receivers)
        if not covers(tree, sender, members):
            raise RejectedError(
                "no_free_output",
                f"The static tree {old.name} does not reach all of these receivers; "
                "submit a new request for the larger group.",
            )
        return light_of(tree, sender, members)

    def _first_tree(self, request: MulticastRequest) -> LightTree:
        found = self.tree_of_any(request, request.receivers, None)
        if isinstance(found, Refusal):
            self.check_light(request, request.receivers, None)
            raise RejectedError(
                "no_resources",
                f"No free tree meets the power budget of every receiver: {described(found)}.",
            )
        if found is None:
            raise RejectedError(
                "no_resources",
                "There are not enough free optical ports or splitters for this extension; try again later.",
            )
        return found

    # -------------------------------------------------------------------------------------- why it waits

    def waits_for(self, request: MulticastRequest, receivers: Sequence[str], allowance: Mapping[str, int]) -> str:
        """Return the reason why a part is pending, as one sentence."""
        away = self.absent_datapaths(request, receivers)
        group = group_of(request, receivers, self._fabric, self._orders.settings.loop_leaf)
        if group is not None:
            switches = {p.switch for end in group.racks for p in self._fabric.racks[rack_of(end)].optical_ports}
            lost = [switch for switch in sorted(switches) if switch in self._inventory.away]
            if len(lost) == len(switches):
                away += [
                    f"the optical switch {switch} is disconnected ({self._inventory.away[switch]})" for switch in lost
                ]
        if away:
            return f"Waiting: {away[0]}."
        if group is not None and allowance.get(request.tenant, 0) < 0:
            return f"Waiting: the tenant {request.tenant} has used its quota of lit time for this hour."
        if group is not None and self._inventory.available_to_one().fit(group) is None:
            sender, members = self._hosts(request, receivers)
            trees = [tree.name for tree in self._inventory.usable_static() if covers(tree, sender, members)]
            if trees:
                return f"Waiting for the static tree {' or '.join(trees)}."
        busy = [rack_of(end) for end in sorted(group.racks if group else ()) if not self._any_port(end)]
        if busy:
            return f"Waiting for a free optical port of {', '.join(busy)}."
        if request.tenant in allowance and group is not None and self._inventory.available_now().fit(group):
            return f"Waiting: the tenant {request.tenant} has reached its limit of splitters."
        return "Waiting for free splitters."

    def _any_port(self, end: str) -> bool:
        return any(self._inventory.available_ports(end, switch) for switch in self._fabric.switches)

    def absent_datapaths(self, request: MulticastRequest, receivers: Sequence[str]) -> list[str]:
        """Return the disconnected ToRs of the group with reasons, each as a clause."""
        racks = dict.fromkeys(self._fabric.hosts[host].rack for host in (request.sender, *receivers))
        away = self._inventory.away
        datapaths = {rack: self._fabric.racks[rack].datapath for rack in racks}
        return [f"the ToR of {rack} is disconnected ({away[d]})" for rack, d in datapaths.items() if d in away]
