"""Whether the controller is done with what vanished clients have left: a baseline must not be measured before that."""

from __future__ import annotations

from thrift.Thrift import TException

from blast_api.ttypes import PartState
from blast_client import ControllerUnreachable
from soak.places import EVIL_TENANT, OPERATOR, PLAN
from soak.room import Room

ALIVE = [PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE]
STAYS = PLAN.optical_ports_per_rack + 1
"""Requests of the hostile tenant that are alive all the time: those that hold light, and one that waits behind them."""


def over(room: Room) -> bool:
    """Whether it answers, and no more than the requests that stay are left of the hostile tenant's."""
    try:
        with room.client(OPERATOR) as operator:
            tenants = [request.tenant for request in operator.list_requests(ALIVE)]
    except (TException, ControllerUnreachable):
        return False
    return tenants.count(EVIL_TENANT) <= STAYS
