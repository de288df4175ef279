"""Admission of requests and changes: each must be valid, and this fabric must be able to serve it at some time.

A rejection is immediate and changes nothing.
"""

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
from blast_controller.core.model.hyper_edge import group_of
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.lease_terms import check_longer, check_terms
from blast_controller.core.model.requests import Extension, MulticastRequest, Part
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.requests.request_table import RequestTable

LONGEST_KEY = 64
"""Keys stand in every answer and every row of the journal."""
LARGEST_SIZE = 1 << 62
"""Bytes: sums of sizes stay within the 64 bits of the interface."""


class AdmissionControl:
    """Knows what this fabric and the operator allow."""

    def __init__(
        self, fabric: Fabric, inventory: Inventory, orders: StandingOrders, layouts: LayoutPlanner, table: RequestTable
    ) -> None:
        self._fabric, self._inventory, self._orders = fabric, inventory, orders
        self._layouts, self._table = layouts, table

    def check_new(self, request: MulticastRequest) -> None:
        """Raise RejectedError unless there is room for a request, and it could be served."""
        settings = self._orders.settings
        if self._orders.draining:
            raise RejectedError("draining", "The controller is draining and admits no new requests; try again later.")
        if len(self._table.requests) >= settings.max_requests:
            raise RejectedError(
                "too_many_requests", "The controller has reached its limit of requests; try again later."
            )
        limit = settings.pending_limit(request.tenant)
        if self._table.pending_of(request.tenant) >= limit:
            raise RejectedError(
                "too_many_pending",
                f"The tenant {request.tenant} has {limit} pending requests, its "
                "limit; wait for a grant or withdraw one.",
            )
        _check_request(request, self._fabric)
        check_terms(request, self._fabric, settings)
        self.check_feasible(request)

    def extended(self, request: MulticastRequest, part: Part, extension: Extension) -> MulticastRequest:
        """Return the request of one part as it would be after `extension`. Raises RejectedError."""
        extended = _check_extension(request, extension, self._fabric)
        check_terms(extended, self._fabric, self._orders.settings)
        check_longer(extended, part, extension.add_seconds, self._fabric, self._orders.settings)
        return extended

    def check_feasible(self, request: MulticastRequest) -> None:
        """Raise RejectedError unless the usable fabric could serve this request without any other holders."""
        if _served_statically(request, self._fabric, self._inventory):
            return
        settings = self._orders.settings
        group = group_of(request, request.receivers, self._fabric, settings.loop_leaf)
        _check_feasible(group, self._fabric, self._inventory, settings.loop_leaf, settings.max_splitters_per_tree)
        limit = settings.limits(request.tenant).max_splitters
        if group is not None and limit is not None:
            _check_share(group, self._inventory, limit)
        self._layouts.check_light(request, request.receivers, limit)

    def hopeless(self, request: MulticastRequest) -> str | None:
        """Return why the usable fabric can no longer serve an admitted request, or None."""
        try:
            self.check_feasible(request)
        except RejectedError as refusal:
            return refusal.sentence
        return None


def _check_request(request: MulticastRequest, fabric: Fabric) -> None:
    """Raise RejectedError unless the request makes sense by itself and names hosts of this fabric."""
    if not 1 <= len(request.key) <= LONGEST_KEY or not request.key.isprintable():
        raise RejectedError("bad_key", f"The key must have 1 to {LONGEST_KEY} printable characters; use another key.")
    _check_host(request.sender, fabric)
    _check_receivers(request.sender, request.receivers, fabric)
    _check_size(request.bytes)
    if request.max_rate is not None and not request.max_rate > 0:
        raise RejectedError("bad_rate", f"The maximum rate must be positive, not {request.max_rate:g} bit/s.")
    if request.pending_timeout is not None and not request.pending_timeout >= 0:
        raise RejectedError("bad_time", "The pending timeout must not be negative.")
    if request.deadline is not None and not request.deadline >= 0:
        raise RejectedError("bad_time", "The deadline must not be negative.")


def _check_size(size: int) -> None:
    """Raise RejectedError unless `size`, in bytes, is positive and at most LARGEST_SIZE."""
    if size <= 0:
        raise RejectedError("bad_bytes", f"The size must be a positive number of bytes, not {size}.")
    if size > LARGEST_SIZE:
        raise RejectedError("bad_bytes", f"The size must be at most {LARGEST_SIZE} bytes, not {size}.")


def _check_receivers(sender: str, receivers: Sequence[str], fabric: Fabric) -> None:
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


def _check_extension(request: MulticastRequest, extension: Extension, fabric: Fabric) -> MulticastRequest:
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
    _check_receivers(request.sender, receivers, fabric)
    _check_size(request.bytes + extension.add_bytes)
    return replace(request, receivers=receivers, bytes=request.bytes + extension.add_bytes)


def _served_statically(request: MulticastRequest, fabric: Fabric, inventory: Inventory) -> bool:
    """Return true if a static tree, in use or not, leads from this sender to these receivers."""
    if not fabric.static_trees:
        return False
    sender, receivers = fabric.hosts[request.sender], [fabric.hosts[name] for name in request.receivers]
    return any(covers(tree, sender, receivers) for tree in inventory.usable_static())


def _check_feasible(
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
        "No optical switch has usable ports of all racks of this group: "
        + "; ".join(f"{end}: {_port_trouble(end, fabric, inventory)}" for end in sorted(group.racks))
        + ". Submit a request for each switch, with the receivers that it shares with the sender.",
        largest,
    )


def _check_share(group: Group, inventory: Inventory, max_splitters_per_tree: int) -> None:
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
    reasons = {port: inventory.unusable(port.element) for port in ports}
    switches = sorted({port.switch for port, reason in reasons.items() if reason is None})
    usable = [f"usable on {', '.join(switches)}"] if switches else []
    return ", ".join([*usable, *filter(None, reasons.values())])
