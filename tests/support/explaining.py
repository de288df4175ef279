"""Explanations of requests in a `World`, and what becomes of a world whose leases end one after the other."""

from __future__ import annotations

from blast_controller.core.explanation import Explanation
from blast_controller.core.model.events import Tick
from blast_controller.core.model.requests import RequestKey
from tests.support.core import TENANT, World


def explained(world: World, key: str, viewer: str | None = None, tenant: str = TENANT) -> Explanation:
    """What a client of the tenant `viewer` (None: an operator) is told of a request."""
    name: RequestKey = (tenant, key)
    return world.core.explain(name, viewer, world.now)


def go_to(world: World, moment: float) -> None:
    """Let the time be `moment`, with every deadline up to then handled when it is due."""
    while (due := world.core.next_timer()) is not None and due <= moment:
        world.now = max(world.now, due)
        world.handle(Tick())
        world.settle()
    world.now = moment
