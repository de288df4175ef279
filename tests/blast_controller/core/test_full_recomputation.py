"""Decisions of the core that try only what an event concerns: the same grants as if all waiting parts were tried.

No part becomes overdue here: a switch on which elements are just being released does not count for the holder, and no
part is tried because of that.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.scheduling import POLICIES
from algorithms.scheduling import policy as policy_module
from algorithms.scheduling.advised import AdvisedScheduler
from algorithms.scheduling.queues import NEW, Token
from algorithms.scheduling.selection import Start
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import (
    Event,
    FinishRequested,
    ProgressReported,
    RequestSubmitted,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import MulticastRequest, RequestKey
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.policy import dispatcher
from tests.support.controller.core import World, make_fabric
from tests.support.controller.core_power import with_optics

RACKS = 6
EVENTS = 50
KINDS = [*["submit"] * 8, *["finish"] * 4, "withdraw", "progress", "progress", "time passes", "device"]
STEPS = (0.0, 0.0, 1.0, 1.5)
"""Seconds between events. Keys that fall are recomputed within a second."""


class TriesAll(AdvisedScheduler):
    """A scheduler that ranks and tries every waiting part at every decision."""

    def _serve_urgent(self, freed: Iterable[Token], now: float) -> list[Start]:
        for place, waiting in self._waiting.items():
            waiting.refused.clear()
            self._queues.put(place, self._rank(waiting.job, now), [NEW])
        return super()._serve_urgent([*freed, NEW], now)


def world_of(fabric: Fabric, policy: str, limit: int | None) -> World:
    """Return a world in which only the optical switches are connected."""
    tenants = {"a": TenantLimits(share=3.0), "b": TenantLimits(max_splitters=limit)}
    world = World(fabric, CoreSettings(policy=policy, tenants=tenants, keep_warm=3.0))
    for switch in fabric.switches:
        world.come_back(switch)
    world.settle()
    return world


def new_request(chance: random.Random, key: str) -> MulticastRequest:
    sender, *receivers = (f"r{number}h1" for number in chance.sample(range(1, RACKS + 1), chance.randint(2, 4)))
    flexible = chance.random() < 0.5
    return MulticastRequest(
        key,
        chance.choice("abc"),
        sender,
        tuple(receivers),
        10 ** chance.randint(7, 10),
        deadline=chance.choice([None, 3.0, 10.0, 30.0]),
        priority=chance.choice([0, 0, 0, 1]),
        may_pause=flexible,
        may_split=flexible,
    )


def event_of(kind: str, chance: random.Random, number: int, world: World) -> Event | None:
    states = {key: request.state for key, request in world.core.requests.items()}
    active = [key for key, state in states.items() if state is PartState.ACTIVE]
    pending = [key for key, state in states.items() if state is PartState.PENDING]
    if kind == "submit":
        return RequestSubmitted(new_request(chance, str(number)))
    if kind == "withdraw":
        return WithdrawRequested(chance.choice(pending)) if pending else None
    if not active:
        return None
    key = chance.choice(active)
    return FinishRequested(key, 0) if kind == "finish" else ProgressReported(key, 0, 10**6)


def play(world: World, event: Event | None) -> None:
    if event is not None:
        with suppress(RequestError):
            world.handle(event)
    world.settle()
    world.catch_up()
    world.settle()


def toggle(world: World, device: int) -> None:
    name = world.devices[device]
    (world.lose if world.device(name).up else world.come_back)(name)


def grants(world: World) -> dict[tuple[RequestKey, int], object]:
    """Return state, receivers and elements of each part."""
    live = {reservation.id: reservation for reservation in world.core.reservations}
    return {
        (key, part.index): (
            part.state,
            part.receivers,
            set(live[part.reservation].elements) if part.reservation in live else None,
        )
        for key, request in world.core.requests.items()
        for part in request.parts
    }


def with_budget(fabric: Fabric) -> Fabric:
    return with_optics(fabric, {"r2": 2.5, "r4": 6.0})


@pytest.mark.parametrize("optics", [lambda fabric: fabric, with_budget], ids=["no power budget", "power budget"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_decisions_grant_the_same_as_a_full_recomputation(
    policy: str, optics: Callable[[Fabric], Fabric], seed: int
) -> None:
    chance = random.Random(seed)
    splitters = [chance.choice([2, 4, 4, 8]) for _ in range(chance.randint(0, 5))]
    fabric = optics(make_fabric(RACKS, splitters, switches=chance.randint(1, 2), hosts=1))
    limit = chance.choice([None, 1, 2])
    world = world_of(fabric, policy, limit)
    with patch.object(dispatcher, "AdvisedScheduler", TriesAll):
        oracle = world_of(fabric, policy, limit)
    worlds = (world, oracle)
    with patch.object(policy_module, "AGING", math.inf):
        for number in range(EVENTS):
            kind, step = chance.choice(KINDS), chance.choice(STEPS)
            device = chance.randrange(len(world.devices))
            event = None if kind in ("time passes", "device") else event_of(kind, chance, number, world)
            for each in worlds:
                each.now += step
                if kind == "device":
                    toggle(each, device)
                play(each, event)
            assert grants(world) == grants(oracle)
