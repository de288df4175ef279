"""Admission of requests and changes: a rejection is immediate and changes nothing."""

from __future__ import annotations

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.lease_terms import check_longer, check_terms
from blast_controller.core.model.requests import Extension, MulticastRequest, Part
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.admission import (
    check_extension,
    check_feasible,
    check_request,
    check_share,
    group_of,
    served_statically,
)
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.requests.request_table import RequestTable


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
        check_request(request, self._fabric)
        check_terms(request, self._fabric, settings)
        self.check_feasible(request)

    def extended(self, request: MulticastRequest, part: Part, extension: Extension) -> MulticastRequest:
        """Return the request of one part as it would be after `extension`. Raises RejectedError."""
        extended = check_extension(request, extension, self._fabric)
        check_terms(extended, self._fabric, self._orders.settings)
        check_longer(extended, part, extension.add_seconds, self._fabric, self._orders.settings)
        return extended

    def check_feasible(self, request: MulticastRequest) -> None:
        """Raise RejectedError unless the usable fabric could serve this request without any other holders."""
        if served_statically(request, self._fabric, self._inventory):
            return
        settings = self._orders.settings
        group = group_of(request, request.receivers, self._fabric, settings.loop_leaf)
        check_feasible(group, self._fabric, self._inventory, settings.loop_leaf, settings.max_splitters_per_tree)
        limit = settings.limits(request.tenant).max_splitters
        if group is not None and limit is not None:
            check_share(group, self._inventory, limit)
        self._layouts.check_light(request, request.receivers, limit)

    def hopeless(self, request: MulticastRequest) -> str | None:
        """Return why the usable fabric can no longer serve an admitted request, or None."""
        try:
            self.check_feasible(request)
        except RejectedError as refusal:
            return refusal.sentence
        return None
