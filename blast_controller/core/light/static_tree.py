"""Static trees: splitters fixed to ToRs or hosts, without an optical switch (Blast, section II-A, figure 2).

They need no circuits: rules at the ToRs decide which packets enter the tree and which hosts get them. One group at a
time uses a tree. A host that is attached to a splitter directly needs no rule; it drops packets of groups that it has
not joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blast_controller.core.light.light_tree import Leaf, LightTree
from blast_controller.core.model.fabric import CrossConnect, Host, OpticalPort, StaticTree
from blast_controller.core.model.identifiers import ElementId, SwitchId, static_element

NO_SWITCH = SwitchId("")
"""The switch id of a static tree's ports."""


@dataclass(frozen=True)
class StaticLight(LightTree):
    """A static tree in use. `leaves` are the ToR ports of the racks that have members."""

    name: str = ""

    @property
    def circuits(self) -> tuple[CrossConnect, ...]:
        """Return nothing: the fibers are fixed."""
        return ()

    @property
    def elements(self) -> frozenset[ElementId]:
        """Return the tree as a whole."""
        return frozenset({static_element(self.name)})

    @property
    def free_outputs(self) -> tuple[int, ...]:
        """Return nothing: the fibers are fixed."""
        return ()


def covers(tree: StaticTree, sender: Host, receivers: Iterable[Host]) -> bool:
    """Return true if `tree` leads from this sender to all these receivers."""
    if tree.root_host is not None:
        rooted, local = sender.name == tree.root_host, set()
    else:
        rooted, local = sender.rack == tree.root_rack, {sender.rack}
    reached = set(tree.leaf_ports) | local
    return rooted and all(host.name in tree.leaf_hosts or host.rack in reached for host in receivers)


def light_of(tree: StaticTree, sender: Host, receivers: Iterable[Host]) -> StaticLight:
    """Return the tree as these receivers use it."""
    racks = dict.fromkeys(host.rack for host in receivers if host.name not in tree.leaf_hosts)
    local = sender.rack if tree.root_host is None else None
    leaves = tuple(Leaf(_port(rack, tree.leaf_ports[rack]), 0) for rack in racks if rack != local)
    root = _port(tree.root_rack or sender.rack, tree.root_port)
    return StaticLight(root, (), leaves, tree.name)


def goes_through(tree: StaticTree, light: StaticLight) -> bool:
    """Return true if `light` matches the wiring of `tree`."""
    root = tree.root_rack in (None, light.root.rack) and light.root.port == tree.root_port
    return root and all(tree.leaf_ports.get(leaf.port.rack) == leaf.port.port for leaf in light.leaves)


def _port(rack: str, port: int) -> OpticalPort:
    return OpticalPort(rack, port, NO_SWITCH, 0, 0)
