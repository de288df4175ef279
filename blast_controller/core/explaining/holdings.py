"""Resources with their reservations and requests."""

from __future__ import annotations

from dataclasses import dataclass

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservations import Reservations


@dataclass(frozen=True, slots=True)
class HeldResources:
    """The pieces of the fabric, the reservations that hold them, and the requests that those are for."""

    inventory: Inventory
    reservations: Reservations
    table: RequestTable
