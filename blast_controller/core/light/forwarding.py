"""Forwarding rules of each ToR for a group: from the sender to the light tree, and from there to the members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import Fabric, Host
from blast_controller.core.model.identifiers import DatapathId

Forwards = Mapping[DatapathId, tuple[Forward, ...]]
"""Datapath id to what it forwards."""


def forwards_for(
    fabric: Fabric, sender: Host, receivers: Iterable[Host], tree: LightTree | None, group: str
) -> Forwards:
    """Return the forwards of one group; `tree` is None when all receivers are in the sender's rack."""
    static = fabric.static_trees.get(tree.name) if isinstance(tree, StaticLight) else None
    on_light = static.leaf_hosts if static else frozenset()
    ports: defaultdict[str, list[int]] = defaultdict(list)
    for host in receivers:
        if host.name not in on_light:
            ports[host.rack].append(host.port)
    result: defaultdict[DatapathId, list[Forward]] = defaultdict(list)
    if static is None or static.root_host is None:
        local = ports.pop(sender.rack, [])
        uplink = [tree.root.port] if tree else []
        result[fabric.racks[sender.rack].datapath].append(_forward(sender.port, sender, group, uplink + local))
    leaves = {leaf.port.rack: leaf for leaf in tree.leaves} if tree else {}
    for rack, members in ports.items():
        leaf = leaves.get(rack)
        if leaf is None:
            raise ValueError(f"rack {rack} has receivers but no leaf")
        result[fabric.racks[rack].datapath].append(_forward(leaf.port.port, sender, group, members))
    return {datapath: tuple(found) for datapath, found in result.items()}


def _forward(in_port: int, sender: Host, group: str, outputs: list[int]) -> Forward:
    return Forward(in_port, sender.ip, group, tuple(sorted(outputs)))
