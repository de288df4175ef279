"""`auto`: light when it is granted, the pipeline while it is not, with a scripted controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_api.ttypes import EventKind, KeyReused, MulticastRequest, PartState, Rejected, RequestStatus
from blast_client import delivery, part_sending
from blast_client.address import parse_address
from blast_client.calls import ControllerUnreachable
from blast_client.delivery import GRANT_SECONDS, SWITCH_SECONDS, Delivered, deliver, light_is_earlier
from blast_transport.base.errors import LightPathError
from blast_transport.base.report import ReceiverOutcome, TransferResult
from blast_transport.carriers.choices import Chain, Dark, Light
from blast_transport.session.route import GiveUp, Order, Route
from tests.support.scripted_controller import RATE, SIZE, ScriptedController
from tests.support.virtual_time import give_virtual_time

pytestmark = pytest.mark.virtual_time

CHAIN = Chain(("b",))
REQUEST = MulticastRequest(key="k", sender="a", receivers=["b"], bytes=SIZE, mayPause=True)


class Carrier:
    """Moves bytes at `chain_rate` or the light's, as the data plane would; `ways` are those it took.

    Its own side of the light breaks at byte `breaks_at`. The first light does not bring more than `middle`.
    """

    def __init__(self, chain_rate: float = RATE / 10, breaks_at: int = SIZE, middle: int = SIZE) -> None:
        self.ways: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._chain_rate, self._breaks_at, self._middle = chain_rate, breaks_at, middle

    def __call__(self, receivers: Sequence[str], route: Route) -> TransferResult:
        way: Order = route.first
        reason, before = "", self._loop.time()
        self._note(way)
        while route.reached < SIZE and not reason:
            self._loop.pause(0.002)
            while (order := route.take_order()) is not None:
                way = order
                self._note(order)
                reason = order.reason if isinstance(order, GiveUp) else reason
            if isinstance(way, Light) and not route.broken and route.reached >= self._breaks_at:
                assert route.otherwise is not None
                way = route.otherwise
                self._note(way)
                route.light_broke("the interface is down")
            now = self._loop.time()
            stop = self._middle if self.ways == ["light"] else SIZE
            route.reached = min(stop, route.reached + self._moved(way, before, now))
            before = now
        outcomes = tuple(ReceiverOutcome(name, not reason, reason, 0, None) for name in receivers)
        return TransferResult("f", 1, SIZE, "", 0.3, 30, 0, outcomes)

    def _moved(self, way: Order, before: float, now: float) -> int:
        if isinstance(way, Light):
            return int(max(0.0, min(now, way.until) - before) * way.rate / 8)
        return int((now - before) * self._chain_rate / 8) if isinstance(way, Chain) else 0

    def _note(self, way: Order) -> None:
        names = {Light: "light", Chain: "chain", Dark: "dark", GiveUp: "end"}
        name = names[type(way)]
        if not self.ways or self.ways[-1] != name:
            self.ways.append(name)


@pytest.fixture(autouse=True)
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    give_virtual_time(monkeypatch, delivery, part_sending)


async def delivering(controller: ScriptedController, carrier: Carrier, story: Awaitable[None]) -> Delivered:
    telling = asyncio.ensure_future(story)
    # What is granted at once is there before anybody asks.
    await asyncio.sleep(0)
    async with asyncio.timeout(8):
        delivered = await deliver(controller, REQUEST, carrier, CHAIN)
        await telling
    return delivered


async def nothing_happens() -> None:
    """The controller says nothing."""


@pytest.fixture
def controller() -> ScriptedController:
    return ScriptedController()


async def test_light_at_once(controller: ScriptedController) -> None:
    carrier = Carrier()

    async def story() -> None:
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["light"] and delivered.sent.complete and not delivered.refused
    assert controller.finished[0].bytesSent == SIZE and not controller.withdrawn


async def test_a_pipeline_while_the_request_waits_and_light_when_it_comes(controller: ScriptedController) -> None:
    carrier = Carrier()

    async def story() -> None:
        await asyncio.sleep(2 * GRANT_SECONDS)
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["chain", "light"] and delivered.sent.complete
    assert controller.finished[0].bytesSent == SIZE


async def test_no_light_at_all(controller: ScriptedController) -> None:
    carrier = Carrier(RATE)
    delivered = await delivering(controller, carrier, nothing_happens())
    assert carrier.ways == ["chain"] and delivered.sent.complete
    assert controller.withdrawn, "a request that nobody wants any more holds up others"


async def test_light_that_comes_too_late_to_help_is_given_back(controller: ScriptedController) -> None:
    carrier = Carrier(RATE / 1.5)

    async def story() -> None:
        await asyncio.sleep(0.35)
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["chain"] and delivered.sent.complete
    assert 0 in controller.finished and delivered.sent.state == PartState.DONE


async def test_a_pause_goes_on_along_the_pipeline_and_back(controller: ScriptedController) -> None:
    carrier = Carrier(middle=SIZE // 2)

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await asyncio.sleep(0.1)
        controller.say(EventKind.PAUSED)
        exact = await controller.until(1)
        await asyncio.sleep(0.05)
        controller.grant(first_byte=exact, lease_ms=5000)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["light", "chain", "light"] and delivered.sent.complete and delivered.sent.pauses == 1


async def test_a_withdrawn_tree_is_replaced_by_the_pipeline(controller: ScriptedController) -> None:
    carrier = Carrier(RATE, middle=SIZE // 2)

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await asyncio.sleep(0.1)
        controller.state = PartState.EXPIRED
        controller.say(EventKind.ENDED, state=PartState.EXPIRED)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["light", "chain"] and delivered.sent.complete
    assert delivered.sent.state == PartState.EXPIRED


@pytest.mark.parametrize(
    "error", [Rejected("unknown_host", "No such host."), ControllerUnreachable("here", "nobody there")]
)
async def test_a_controller_that_refuses_or_is_away(error: Exception, controller: ScriptedController) -> None:
    async def refuse(_: MulticastRequest) -> None:
        raise error

    controller.submit = refuse  # type: ignore[assignment, method-assign]
    carrier = Carrier(RATE)
    delivered = await delivering(controller, carrier, nothing_happens())
    assert carrier.ways == ["chain"] and delivered.sent.complete and delivered.refused


async def test_a_controller_that_goes_away_in_the_middle(controller: ScriptedController) -> None:
    carrier = Carrier(RATE, middle=SIZE // 2)
    calls = 0

    async def story() -> None:
        controller.grant(lease_ms=5000)
        await asyncio.sleep(0.1)

        async def lost(*_: object) -> None:
            nonlocal calls
            calls += 1
            raise ControllerUnreachable("here", "gone")

        controller.await_event = controller.withdraw = lost  # type: ignore[assignment, method-assign]

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["light", "chain"] and delivered.sent.complete and calls


async def test_light_that_cannot_be_sent_is_given_back_and_the_pipeline_goes_on(controller: ScriptedController) -> None:
    carrier = Carrier(RATE, breaks_at=SIZE // 3)

    async def story() -> None:
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["light", "chain"] and delivered.sent.complete
    assert delivered.refused == "the interface is down"
    assert SIZE // 3 <= controller.finished[0].bytesSent < SIZE, "at once: others wait for it"


async def test_light_that_cannot_be_sent_is_not_asked_for_again(controller: ScriptedController) -> None:
    carrier = Carrier(RATE / 2, breaks_at=SIZE // 3)

    async def story() -> None:
        controller.grant(lease_ms=5000)
        async with asyncio.timeout(5):
            while carrier.ways != ["light", "chain"]:
                controller.say(EventKind.PAUSED)
                await asyncio.sleep(0.02)

    delivered = await delivering(controller, carrier, story())
    assert carrier.ways == ["light", "chain"] and delivered.sent.complete and controller.withdrawn


async def test_a_carrier_that_fails_gives_the_request_up(controller: ScriptedController) -> None:
    def broken(receivers: Sequence[str], route: Route) -> TransferResult:
        raise LightPathError("the interface is down")

    async def story() -> None:
        controller.grant(lease_ms=5000)

    telling = asyncio.ensure_future(story())
    async with asyncio.timeout(5):
        delivered = await deliver(controller, REQUEST, broken, CHAIN)
        await telling
    assert delivered.sent.result is None and delivered.sent.reason == "the interface is down" and controller.withdrawn


@given(
    remaining=st.integers(0, 10**12),
    light=st.floats(1e6, 1e12),
    chain=st.floats(1e6, 1e12),
)
def test_light_is_taken_exactly_when_it_ends_earlier(remaining: int, light: float, chain: float) -> None:
    by_light = SWITCH_SECONDS + remaining * 8 / (light * 0.94)
    assert light_is_earlier(remaining, light, chain) == (by_light < remaining * 8 / chain)
    assert light_is_earlier(remaining, light, None)
    more = [light_is_earlier(size, light, chain) for size in (remaining, 2 * remaining, 4 * remaining)]
    assert all(later or not earlier for earlier, later in pairwise(more)), "more to send never speaks against light"


@pytest.mark.parametrize("granted", [False, True])
async def test_who_is_cancelled_leaves_no_request_and_no_transfer(
    controller: ScriptedController, granted: bool
) -> None:
    carrier = Carrier(chain_rate=1.0, breaks_at=SIZE, middle=1)
    if granted:
        controller.grant(lease_ms=60_000)
    delivering = asyncio.ensure_future(deliver(controller, REQUEST, carrier, CHAIN))
    async with asyncio.timeout(30):
        while not carrier.ways:
            await asyncio.sleep(0.002)
        delivering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivering
    assert controller.withdrawn
    assert carrier.ways[-1] == "end", "its receivers hear of it"


async def test_who_is_cancelled_while_nobody_answers_withdraws_all_the_same() -> None:
    class Silent(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    asked, controller = asyncio.Event(), Silent()
    delivering = asyncio.ensure_future(deliver(controller, REQUEST, Carrier(), CHAIN))
    await asked.wait()
    delivering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert controller.withdrawn


async def test_a_key_of_somebody_else_is_not_withdrawn() -> None:
    class Taken(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            raise KeyReused("k")

    controller = Taken()
    delivered = await deliver(controller, REQUEST, Carrier(RATE), CHAIN)
    assert delivered.refused and not controller.withdrawn


@pytest.mark.parametrize("call", ["finish", "extend"])
async def test_a_controller_that_is_away_when_it_is_told_something_costs_the_light_and_nothing_else(
    controller: ScriptedController, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrier = Carrier()

    async def away(*_: object) -> RequestStatus:
        raise ControllerUnreachable(parse_address("127.0.0.1:1"), "gone")

    async def story() -> None:
        controller.grant(lease_ms=100 if call == "extend" else 5000)

    monkeypatch.setattr(controller, call, away)
    delivered = await delivering(controller, carrier, story())
    assert delivered.sent.complete
    assert carrier.ways[0] == "light"
    assert "127.0.0.1:1" in delivered.sent.reason
