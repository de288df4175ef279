"""Whether a request, or a change of one, is taken: what is refused is refused at once, and changes nothing."""

from __future__ import annotations

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.model.errors import Rejected
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
        """Raise Rejected unless there is room for a request, and it could be served."""
        settings = self._orders.settings
        if self._orders.draining:
            raise Rejected("draining", "The controller is being drained and admits nothing new; try again later.")
        if len(self._table.requests) >= settings.max_requests:
            raise Rejected("too_many_requests", "The controller holds as many requests as it may; try again later.")
        most = settings.pending_limit(request.tenant)
        if self._table.pending_of(request.tenant) >= most:
            raise Rejected("too_many_pending", f"The tenant {request.tenant} already has {most} requests waiting.")
        check_request(request, self._fabric)
        check_terms(request, self._fabric, settings)
        self.check_feasible(request)

    def extended(self, request: MulticastRequest, part: Part, extension: Extension) -> MulticastRequest:
        """The request of one part as it would be after `extension`. Raises Rejected."""
        wanted = check_extension(request, extension, self._fabric)
        check_terms(wanted, self._fabric, self._orders.settings)
        check_longer(wanted, part, extension.add_seconds, self._fabric, self._orders.settings)
        return wanted

    def check_feasible(self, request: MulticastRequest) -> None:
        """Raise Rejected unless what is left of the fabric could serve this request if nobody held anything."""
        if served_statically(request, self._fabric, self._inventory):
            return
        settings = self._orders.settings
        group = group_of(request, request.receivers, self._fabric, settings.loop_leaf)
        check_feasible(group, self._fabric, self._inventory, settings.loop_leaf, settings.max_splitters_per_tree)
        most = settings.limits(request.tenant).max_splitters
        if group is not None and most is not None:
            check_share(group, self._inventory, most)
        self._layouts.check_light(request, request.receivers, most)

    def hopeless(self, request: MulticastRequest) -> str | None:
        """Why a request that was admitted can no longer be served by what is left of the fabric, or None."""
        try:
            self.check_feasible(request)
        except Rejected as refusal:
            return refusal.sentence
        return None
