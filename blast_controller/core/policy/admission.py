"""Admission: is a request valid, and could this fabric ever serve it? Everything refused here is refused at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from algorithms.b_matching.residual import Group
from algorithms.splitter_tree import max_leaves
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.static_tree import covers
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.fabric import Fabric, rack_of
from blast_controller.core.model.hyper_edge import hyper_edge
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.requests import Extension, MulticastRequest

LONGEST_KEY = 64
LARGEST_SIZE = 1 << 62


def check_request(request: MulticastRequest, fabric: Fabric) -> None:
    """Raise RejectedError unless the request makes sense by itself and names hosts of this fabric."""
    if not 1 <= len(request.key) <= LONGEST_KEY or not request.key.isprintable():
        raise RejectedError("bad_key", f"The key must have 1 to {LONGEST_KEY} printable characters; use another key.")
    _check_host(request.sender, fabric)
    check_receivers(request.sender, request.receivers, fabric)
    check_size(request.bytes)
    if request.max_rate is not None and not request.max_rate > 0:
        raise RejectedError("bad_rate", f"The maximum rate must be positive, not {request.max_rate:g} bit/s.")
    if request.pending_timeout is not None and not request.pending_timeout >= 0:
        raise RejectedError("bad_time", "The pending timeout must not be negative.")
    if request.deadline is not None and not request.deadline >= 0:
        raise RejectedError("bad_time", "The deadline must not be negative.")


def check_size(size: int) -> None:
    """Raise RejectedError unless `size`, in bytes, is positive and at most LARGEST_SIZE."""
    if size <= 0:
        raise RejectedError("bad_bytes", f"The size must be a positive number of bytes, not {size}.")
    if size > LARGEST_SIZE:
        raise RejectedError("bad_bytes", f"The size must be at most {LARGEST_SIZE} bytes, not {size}.")


def check_receivers(sender: str, receivers: Sequence[str], fabric: Fabric) -> None:
    """Raise RejectedError unless `receivers` are distinct hosts of this fabric, at least one, without the sender."""
    if not receivers:
        raise RejectedError("no_receivers", "A multicast needs at least one receiver.")
    for host in receivers:
        _check_host(host, fabric)
    if sender in receivers:
        raise RejectedError("sender_among_receivers", f"The sender {sender} is among the receivers; remove it.")
    if len(set(receivers)) < len(receivers):
        twice = next(host for index, host in enumerate(receivers) if host in receivers[:index])
        raise RejectedError("duplicate_receivers", f"The receiver {twice} is listed twice; list each receiver once.")


def check_extension(request: MulticastRequest, extension: Extension, fabric: Fabric) -> MulticastRequest:
    """Return the request as it would be after `extension`. Raises RejectedError when the extension makes no sense."""
    for host in extension.remove_receivers:
        if host not in request.receivers:
            raise RejectedError("not_a_receiver", f"{host} is not among the receivers, so it cannot be removed.")
    if not 0 <= extension.add_seconds < math.inf or extension.add_bytes < 0:
        raise RejectedError("bad_extension", "Added time and bytes must not be negative.")
    if extension == Extension():
        raise RejectedError(
            "bad_extension", "The extension changes nothing; add receivers, time or bytes, or remove receivers."
        )
    kept = tuple(host for host in request.receivers if host not in extension.remove_receivers)
    receivers = kept + extension.add_receivers
    check_receivers(request.sender, receivers, fabric)
    check_size(request.bytes + extension.add_bytes)
    return replace(request, receivers=receivers, bytes=request.bytes + extension.add_bytes)


def group_of(request: MulticastRequest, receivers: Sequence[str], fabric: Fabric, loop_leaf: bool) -> Group | None:
    """Return the hyper-edge that these receivers of a request are; None when all are in the sender's rack."""
    edge = hyper_edge(request, receivers, fabric, loop_leaf)
    if not edge.others:
        return None
    ends = frozenset({fabric.root_end(edge.sender), *map(fabric.leaf_end, edge.others)})
    return Group(request.id, ends, edge.leaves, edge.volume, request.tenant)


def served_statically(request: MulticastRequest, fabric: Fabric, inventory: Inventory) -> bool:
    """Return true if a static tree, in use or not, leads from this sender to these receivers."""
    if not fabric.static_trees:
        return False
    sender, receivers = fabric.hosts[request.sender], [fabric.hosts[name] for name in request.receivers]
    return any(covers(tree, sender, receivers) for tree in inventory.usable_static())


def check_feasible(
    group: Group | None, fabric: Fabric, inventory: Inventory, loop_leaf: bool, max_splitters_per_tree: int | None
) -> None:
    """Raise RejectedError unless the group could be served without any other holders."""
    if group is None or inventory.available_to_one().fit(group):
        return
    largest = _largest_group(fabric, inventory, loop_leaf, max_splitters_per_tree)
    if len(group.racks) > largest:
        raise RejectedError(
            "group_too_wide",
            f"The group spans {len(group.racks)} racks; the splitters of this fabric reach at most {largest}. "
            "Split the receivers into smaller groups.",
            largest,
        )
    raise RejectedError(
        "no_path",
        "No optical switch has usable ports of all racks of this group:  "
        + "; ".join(f"{end}: {_port_trouble(end, fabric, inventory)}" for end in sorted(group.racks))
        + ".",
        largest,
    )


def check_share(group: Group, inventory: Inventory, max_splitters_per_tree: int) -> None:
    """Raise RejectedError unless the group could be served with no more splitters than its tenant may hold."""
    if inventory.available_to_one({group.tenant: max_splitters_per_tree}).fit(group) is None:
        raise RejectedError(
            "too_many_splitters",
            f"The group needs more splitters than the tenant {group.tenant} may hold at a time "
            f"({max_splitters_per_tree}); submit smaller groups.",
        )


def _check_host(host: str, fabric: Fabric) -> None:
    if host not in fabric.hosts:
        raise RejectedError("unknown_host", f"The fabric has no host {host!r}; run `blast fabric show` for all names.")


def _largest_group(fabric: Fabric, inventory: Inventory, loop_leaf: bool, max_splitters_per_tree: int | None) -> int:
    def on(switch: SwitchId) -> int:
        racks = {p.rack for p in fabric.ports_on(switch) if inventory.unusable(p.element) is None}
        leaves = max_leaves(inventory.capacity.sizes(switch), max_splitters_per_tree)
        joined = 1 + (leaves - 1 if loop_leaf and leaves > 1 else leaves)
        return min(joined, len(racks))

    return max((1, *(on(switch) for switch in fabric.switches)))


def _port_trouble(end: str, fabric: Fabric, inventory: Inventory) -> str:
    ports = [port for port in fabric.racks[rack_of(end)].optical_ports if port.end == end]
    if not ports:
        return "has no optical port"
    reasons = [inventory.unusable(port.element) for port in ports]
    return next((reason for reason in reasons if reason), "usable")
