"""Grants, pauses and parts joined with a data plane: a scripted controller, and a carrier that obeys its route."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest

import blast_client.sending
from blast_api.ttypes import (
    EventKind,
    MulticastRequest,
    PartState,
    Rejected,
    RequestStatus,
)
from blast_client import part_sending
from blast_client.part_plan import WrongGrant
from blast_client.part_sending import PartSent
from blast_client.sending import send
from blast_transport.base.errors import LightPathError
from blast_transport.base.report import ReceiverOutcome, TransferResult
from blast_transport.carriers.choices import Dark, Light
from blast_transport.session.route import GiveUp, Route
from tests.support.scripted_controller import SIZE, ScriptedController
from tests.support.virtual_time import give_virtual_time
from tests.support.waiting import eventually_async

pytestmark = pytest.mark.virtual_time


class Carrier:
    """Counts the bytes that it may send while its route shines, as the data plane would."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.lights: list[Light | Dark] = []
        self.sent_in_the_dark = 0

    def __call__(self, receivers: Sequence[str], route: Route) -> TransferResult:
        light, reason = route.first, ""
        before = self._loop.time()
        while route.reached < SIZE and not reason:
            self._loop.pause(0.002)
            while (order := route.take_order()) is not None:
                if isinstance(order, GiveUp):
                    reason = order.reason
                else:
                    light = order
                    self.lights.append(order)
            now = self._loop.time()
            if isinstance(light, Light):
                lit = max(0.0, min(now, light.until) - before)
                route.reached = min(SIZE, route.reached + int(lit * light.rate / 8))
            before = now
        outcomes = tuple(ReceiverOutcome(name, not reason, reason, 0, None) for name in receivers)
        return TransferResult("f", 1, SIZE, "", 0.3, 30, 0, outcomes)


REQUEST = MulticastRequest(key="k", sender="a", receivers=["b"], bytes=SIZE, mayPause=True)


@pytest.fixture
def controller() -> ScriptedController:
    return ScriptedController()


@pytest.fixture(autouse=True)
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    give_virtual_time(monkeypatch, part_sending, blast_client.sending)


async def sending(controller: ScriptedController, carrier: Carrier, story: object) -> list[PartSent]:
    telling = asyncio.ensure_future(story)  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        sent = await send(controller, REQUEST, carrier)
        await telling
    return sent


async def test_leases_one_after_the_other(controller: ScriptedController) -> None:
    carrier = Carrier()

    async def story() -> None:
        controller.grant()
        for number in (1, 2):
            reached = await controller.until(number)
            await asyncio.sleep(0.04)
            controller.grant(first_byte=reached, kind=EventKind.CHANGED)
        reached = await controller.until(3)
        await asyncio.sleep(0.04)
        controller.grant(first_byte=reached, kind=EventKind.CHANGED, lease_ms=2000)

    (part,) = await sending(controller, carrier, story())
    assert part.complete and part.state == PartState.DONE and part.pauses == 0
    reached = [reached for _, reached in controller.told]
    assert reached == sorted(reached) and len(set(reached)) == 3 and reached[0] <= 10_000
    assert controller.finished[0].bytesSent == SIZE and controller.finished[0].failedReceivers == []


async def test_a_pause_and_another_group(controller: ScriptedController) -> None:
    carrier = Carrier()

    async def story() -> None:
        controller.grant()
        await controller.until(1)
        await asyncio.sleep(0.06)
        controller.say(EventKind.PAUSED)
        exact = await controller.until(2)
        await asyncio.sleep(0.1)
        assert 5_000 <= exact <= 11_000
        controller.grant(first_byte=exact, lease_ms=5000, group="239.0.0.2")

    (part,) = await sending(controller, carrier, story())
    assert part.complete and part.pauses == 1
    assert [light.group for light in carrier.lights if isinstance(light, Light)] == ["239.0.0.1", "239.0.0.2"]


async def test_parts_side_by_side(controller: ScriptedController) -> None:
    async def story() -> None:
        controller.grant(0, receivers=("b", "c"), lease_ms=5000)
        await asyncio.sleep(0.05)
        controller.grant(1, receivers=("d",), lease_ms=5000)

    first, second = await sending(controller, Carrier(), story())
    assert (first.receivers, second.receivers) == (("b", "c"), ("d",))
    assert first.complete and second.complete and set(controller.finished) == {0, 1}


async def test_a_finish_that_crosses_a_pause_is_made_good(controller: ScriptedController) -> None:
    controller.busy_finishes = 1

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await eventually_async(lambda: not controller.busy_finishes, "the finish")
        controller.say(EventKind.PAUSED)
        assert await controller.until(1) == SIZE
        controller.grant(first_byte=SIZE)

    (part,) = await sending(controller, Carrier(), story())
    assert part.complete and part.state == PartState.DONE


async def test_who_loses_the_request_stops_sending(controller: ScriptedController) -> None:
    async def story() -> None:
        controller.grant()
        await controller.until(1)
        controller.state = PartState.EXPIRED
        controller.say(EventKind.ENDED, state=PartState.EXPIRED)

    (part,) = await sending(controller, Carrier(), story())
    assert not part.complete and part.state == PartState.EXPIRED and part.reason.startswith("reason of")
    assert part.result is not None and part.result.receivers[0].reason == part.reason


async def test_a_sender_that_cannot_send_withdraws(controller: ScriptedController) -> None:
    def broken(receivers: Sequence[str], route: Route) -> TransferResult:
        raise LightPathError("the light path takes no datagrams")

    controller.grant()
    async with asyncio.timeout(5):
        (part,) = await send(controller, REQUEST, broken)
    assert controller.withdrawn and part.result is None and part.reason == "the light path takes no datagrams"


async def test_a_wrong_grant_is_the_controllers_fault_and_stops_the_carrier(controller: ScriptedController) -> None:
    carried: list[TransferResult] = []
    carrier = Carrier()

    def carry(receivers: Sequence[str], route: Route) -> TransferResult:
        carried.append(carrier(receivers, route))
        return carried[-1]

    controller.grant(first_byte=1)
    async with asyncio.timeout(5):
        with pytest.raises(WrongGrant):
            await send(controller, REQUEST, carry)
        await eventually_async(lambda: carried, "the carrier's end")
    assert carried[0].complete == 0


async def test_a_request_that_never_has_light(controller: ScriptedController) -> None:
    controller.state = PartState.EXPIRED
    controller.say(EventKind.ENDED, state=PartState.EXPIRED)
    async with asyncio.timeout(5):
        assert await send(controller, REQUEST, Carrier()) == []


async def test_what_the_controller_refuses_is_raised_as_it_is() -> None:
    class Refusing(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            raise Rejected("unknown_host", "nobody knows a")

    with pytest.raises(Rejected, match="nobody"):
        await send(Refusing(), REQUEST, Carrier())


async def test_who_is_cancelled_leaves_no_request_and_no_transfer(controller: ScriptedController) -> None:
    controller.grant(lease_ms=60_000)
    told: list[Route] = []

    def stuck(receivers: Sequence[str], route: Route) -> TransferResult:
        told.append(route)
        while not isinstance(route.take_order(), GiveUp):
            time.sleep(0.002)
        ended.set()
        raise LightPathError("given up")

    ended = threading.Event()
    sending = asyncio.ensure_future(send(controller, REQUEST, stuck))
    async with asyncio.timeout(30):
        while not told:
            await asyncio.sleep(0.002)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert controller.withdrawn and ended.wait(30)
