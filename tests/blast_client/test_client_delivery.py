"""Grants, pauses and parts joined with a data plane: `auto`, which goes by the pipeline without light, and light alone.

The controller is scripted, the data plane a model that follows its route in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_api.ttypes import (
    Ended,
    Event,
    EventKind,
    Extension,
    Grant,
    KeyReused,
    MulticastRequest,
    PartState,
    Rejected,
    RequestStatus,
    TimedOut,
    TransferReport,
)
from blast_client.api.address import parse_address
from blast_client.api.calls import ControllerUnreachableError
from blast_client.send import delivery, in_thread, part_sending
from blast_client.send import sending as sending_module
from blast_client.send.delivery import GRANT_SECONDS, SWITCH_SECONDS, Delivered, deliver, light_is_earlier
from blast_client.send.part_plan import InvalidGrantError
from blast_client.send.part_sending import PartSent
from blast_client.send.sending import send
from blast_transport.base.errors import LightPathError
from blast_transport.base.report import ReceiverOutcome, TransferResult
from blast_transport.session.route import GiveUp, Order, Route
from blast_transport.transports.choices import Chain, OpticalChoice, OpticalPause
from tests.support.virtual_time import give_virtual_time
from tests.support.waiting import eventually_async

pytestmark = pytest.mark.virtual_time

SIZE = 30_000
RATE = 8e5
"""Bits per second: 100 bytes in a millisecond, 0.3 s in all."""


class ScriptedController:
    """Serves one request; the test says when what happens."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.told: list[tuple[int, int]] = []
        self.finished: dict[int, TransferReport] = {}
        self.state = PartState.PENDING
        self.withdrawn = False
        self.busy_finishes = 0
        self._changed = asyncio.Event()

    def say(self, kind: int, part: int = 0, grant: Grant | None = None, state: int | None = None) -> None:
        self.events.append(Event(len(self.events) + 1, kind, part, grant, f"reason of {kind}", state))
        self._changed.set()

    def grant(
        self,
        part: int = 0,
        first_byte: int = 0,
        receivers: Sequence[str] = ("b",),
        lease_ms: int = 100,
        kind: int = EventKind.GRANTED,
        group: str = "239.0.0.1",
    ) -> None:
        grant = Grant("k", part, list(receivers), group, 80, int(RATE), 300, lease_ms, first_byte, [], 1)
        self.say(kind, part, grant)

    async def until(self, number_told: int) -> int:
        """Wait until so much has been told; the last of it."""
        await eventually_async(lambda: len(self.told) >= number_told, "what the sender tells")
        return self.told[-1][1]

    async def status(self, key: str) -> RequestStatus:
        return RequestStatus("k", "default", self.state, "a", ["b"], SIZE, 0, [], len(self.events))

    async def submit(self, request: MulticastRequest) -> RequestStatus:
        return await self.status("k")

    async def await_event(self, key: str, after_sequence: int = 0) -> Event:
        if len(self.events) <= after_sequence:
            self._changed.clear()
            try:
                async with asyncio.timeout(0.05):
                    await self._changed.wait()
            except TimeoutError:
                raise TimedOut("nothing") from None
        return self.events[after_sequence]

    async def extend(self, key: str, extension: Extension) -> RequestStatus:
        assert extension.part is not None and extension.progressBytes is not None
        self.told.append((extension.part, extension.progressBytes))
        return await self.status(key)

    async def finish(self, key: str, part: int = 0, report: TransferReport | None = None) -> RequestStatus:
        if self.busy_finishes:
            self.busy_finishes -= 1
            raise Rejected("not_active", "it is pending")
        if part in self.finished:
            raise Ended(PartState.DONE, "done")
        assert report is not None
        self.finished[part] = report
        granted = {event.part for event in self.events if event.kind == EventKind.GRANTED}
        self.state = PartState.DONE if granted == set(self.finished) else PartState.ACTIVE
        self.say(EventKind.ENDED, part, state=PartState.DONE)
        return await self.status(key)

    async def withdraw(self, key: str) -> RequestStatus:
        self.withdrawn, self.state = True, PartState.WITHDRAWN
        self.say(EventKind.ENDED, state=PartState.WITHDRAWN)
        return await self.status(key)


CHAIN = Chain(("b",))
REQUEST = MulticastRequest(key="k", sender="a", receivers=["b"], bytes=SIZE, mayPause=True)


class Transport:
    """Moves bytes at `chain_rate` or that of light, as the data plane does; `ways` are the transports that it took.

    Its own side of the light breaks at byte `breaks_at`. The first light does not bring more than `middle`.
    """

    def __init__(self, chain_rate: float = RATE / 10, breaks_at: int = SIZE, middle: int = SIZE) -> None:
        self.ways: list[str] = []
        self.lights: list[OpticalChoice] = []
        self.result: TransferResult | None = None
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
            if isinstance(way, OpticalChoice) and not route.broken and route.reached >= self._breaks_at:
                assert route.otherwise is not None
                way = route.otherwise
                self._note(way)
                route.light_broke("the interface is down")
            now = self._loop.time()
            stop = self._middle if self.ways == ["light"] else SIZE
            route.reached = min(stop, route.reached + self._moved(way, before, now))
            before = now
        outcomes = tuple(ReceiverOutcome(name, not reason, reason, 0, None) for name in receivers)
        self.result = TransferResult("f", 1, SIZE, "", 0.3, 30, 0, outcomes)
        return self.result

    def _moved(self, way: Order, before: float, now: float) -> int:
        if isinstance(way, OpticalChoice):
            return int(max(0.0, min(now, way.until) - before) * way.rate / 8)
        return int((now - before) * self._chain_rate / 8) if isinstance(way, Chain) else 0

    def _note(self, way: Order) -> None:
        if isinstance(way, OpticalChoice):
            self.lights.append(way)
        name = {OpticalChoice: "light", Chain: "chain", OpticalPause: "dark", GiveUp: "end"}[type(way)]
        if not self.ways or self.ways[-1] != name:
            self.ways.append(name)


@pytest.fixture(autouse=True)
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still also while a transfer's thread works: it is one of the loop's own executor."""
    give_virtual_time(monkeypatch, delivery, part_sending, sending_module)
    # The data of these tests wait as large ones do.
    monkeypatch.setattr(delivery, "_SMALL_BYTES", 0)

    def in_executor(_name: str, work: Callable[..., TransferResult], *arguments: object) -> object:
        return asyncio.get_running_loop().run_in_executor(None, work, *arguments)

    for module in (in_thread, part_sending):
        monkeypatch.setattr(module, "in_thread", in_executor)


async def delivering(controller: ScriptedController, transport: Transport, story: Awaitable[None]) -> Delivered:
    telling = asyncio.ensure_future(story)
    # What is granted at once is there before anybody asks.
    await asyncio.sleep(0)
    async with asyncio.timeout(8):
        delivered = await deliver(controller, REQUEST, transport, CHAIN)
        await telling
    return delivered


async def nothing_happens() -> None:
    """Send nothing, as a controller without news."""


@pytest.fixture
def controller() -> ScriptedController:
    return ScriptedController()


async def test_light_at_once(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["light"] and delivered.sent.complete and not delivered.refused
    assert controller.finished[0].bytesSent == SIZE and not controller.withdrawn


async def test_a_pipeline_while_the_request_waits_and_light_when_it_comes(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        await asyncio.sleep(2 * GRANT_SECONDS)
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["chain", "light"] and delivered.sent.complete
    assert controller.finished[0].bytesSent == SIZE


async def test_small_data_wait_for_no_grant(controller: ScriptedController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_SMALL_BYTES", SIZE)
    transport = Transport(RATE)
    began = asyncio.get_running_loop().time()
    delivered = await delivering(controller, transport, nothing_happens())
    assert transport.ways == ["chain"] and delivered.sent.complete
    assert asyncio.get_running_loop().time() - began < SIZE * 8 / RATE + GRANT_SECONDS / 2


async def test_no_light_at_all(controller: ScriptedController) -> None:
    transport = Transport(RATE)
    delivered = await delivering(controller, transport, nothing_happens())
    assert transport.ways == ["chain"] and delivered.sent.complete
    assert controller.withdrawn, "a request that nobody wants any more holds up others"


async def test_light_that_comes_too_late_to_help_is_given_back(controller: ScriptedController) -> None:
    transport = Transport(RATE / 1.5)

    async def story() -> None:
        await asyncio.sleep(0.35)
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["chain"] and delivered.sent.complete
    assert 0 in controller.finished and delivered.sent.state == PartState.DONE


async def test_a_pause_goes_on_along_the_pipeline_and_back(controller: ScriptedController) -> None:
    transport = Transport(middle=SIZE // 2)

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await asyncio.sleep(0.1)
        controller.say(EventKind.PAUSED)
        exact = await controller.until(1)
        await asyncio.sleep(0.05)
        controller.grant(first_byte=exact, lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["light", "chain", "light"] and delivered.sent.complete and delivered.sent.pauses == 1


async def test_a_withdrawn_tree_is_replaced_by_the_pipeline(controller: ScriptedController) -> None:
    transport = Transport(RATE, middle=SIZE // 2)

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await asyncio.sleep(0.1)
        controller.state = PartState.EXPIRED
        controller.say(EventKind.ENDED, state=PartState.EXPIRED)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["light", "chain"] and delivered.sent.complete
    assert delivered.sent.state == PartState.EXPIRED


@pytest.mark.parametrize(
    "error", [Rejected("unknown_host", "No such host."), ControllerUnreachableError("here", "nobody there")]
)
async def test_a_controller_that_refuses_or_is_away(error: Exception, controller: ScriptedController) -> None:
    async def refuse(_: MulticastRequest) -> None:
        raise error

    controller.submit = refuse  # type: ignore[assignment, method-assign]
    transport = Transport(RATE)
    delivered = await delivering(controller, transport, nothing_happens())
    assert transport.ways == ["chain"] and delivered.sent.complete and delivered.refused


async def test_a_controller_that_goes_away_in_the_middle(controller: ScriptedController) -> None:
    transport = Transport(RATE, middle=SIZE // 2)
    calls = 0

    async def story() -> None:
        controller.grant(lease_ms=5000)
        await asyncio.sleep(0.1)

        async def lost(*_: object) -> None:
            nonlocal calls
            calls += 1
            raise ControllerUnreachableError("here", "gone")

        controller.await_event = controller.withdraw = lost  # type: ignore[assignment, method-assign]

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["light", "chain"] and delivered.sent.complete and calls


async def test_light_that_cannot_be_sent_is_given_back_and_the_pipeline_goes_on(controller: ScriptedController) -> None:
    transport = Transport(RATE, breaks_at=SIZE // 3)

    async def story() -> None:
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["light", "chain"] and delivered.sent.complete
    assert delivered.refused == "the interface is down"
    assert SIZE // 3 <= controller.finished[0].bytesSent < SIZE, "at once: others wait for it"


async def test_light_that_cannot_be_sent_is_not_asked_for_again(controller: ScriptedController) -> None:
    transport = Transport(RATE / 2, breaks_at=SIZE // 3)

    async def story() -> None:
        controller.grant(lease_ms=5000)
        async with asyncio.timeout(5):
            while transport.ways != ["light", "chain"]:
                controller.say(EventKind.PAUSED)
                await asyncio.sleep(0.02)

    delivered = await delivering(controller, transport, story())
    assert transport.ways == ["light", "chain"] and delivered.sent.complete and controller.withdrawn


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
    transport = Transport(chain_rate=1.0, breaks_at=SIZE, middle=1)
    if granted:
        controller.grant(lease_ms=60_000)
    delivering = asyncio.ensure_future(deliver(controller, REQUEST, transport, CHAIN))
    await eventually_async(lambda: transport.ways, "the transfer to begin")
    delivering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert controller.withdrawn
    assert transport.ways[-1] == "end", "its receivers hear of it"


async def test_who_is_cancelled_while_nobody_answers_withdraws_all_the_same() -> None:
    class Silent(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    asked, controller = asyncio.Event(), Silent()
    delivering = asyncio.ensure_future(deliver(controller, REQUEST, Transport(), CHAIN))
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
    delivered = await deliver(controller, REQUEST, Transport(RATE), CHAIN)
    assert delivered.refused and not controller.withdrawn


@pytest.mark.parametrize("call", ["finish", "extend"])
async def test_a_controller_that_is_away_when_it_is_told_something_costs_the_light_and_nothing_else(
    controller: ScriptedController, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = Transport()

    async def away(*_: object) -> RequestStatus:
        raise ControllerUnreachableError(parse_address("127.0.0.1:1"), "gone")

    async def story() -> None:
        controller.grant(lease_ms=100 if call == "extend" else 5000)

    monkeypatch.setattr(controller, call, away)
    delivered = await delivering(controller, transport, story())
    assert delivered.sent.complete
    assert transport.ways[0] == "light"
    assert "127.0.0.1:1" in delivered.sent.reason


# ------------------------------------------------------------------------------------- light alone: `send`


async def sending(controller: ScriptedController, transport: Transport, story: object) -> list[PartSent]:
    telling = asyncio.ensure_future(story)  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        sent = await send(controller, REQUEST, transport)
        await telling
    return sent


async def test_leases_one_after_the_other(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        controller.grant()
        for number in (1, 2):
            reached = await controller.until(number)
            await asyncio.sleep(0.04)
            controller.grant(first_byte=reached, kind=EventKind.CHANGED)
        reached = await controller.until(3)
        await asyncio.sleep(0.04)
        controller.grant(first_byte=reached, kind=EventKind.CHANGED, lease_ms=2000)

    (part,) = await sending(controller, transport, story())
    assert part.complete and part.state == PartState.DONE and part.pauses == 0
    reached = [reached for _, reached in controller.told]
    assert reached == sorted(reached) and len(set(reached)) == 3 and reached[0] <= 10_000
    assert controller.finished[0].bytesSent == SIZE and controller.finished[0].failedReceivers == []


async def test_a_pause_and_another_group(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        controller.grant()
        await controller.until(1)
        await asyncio.sleep(0.06)
        controller.say(EventKind.PAUSED)
        exact = await controller.until(2)
        await asyncio.sleep(0.1)
        assert 5_000 <= exact <= 11_000
        controller.grant(first_byte=exact, lease_ms=5000, group="239.0.0.2")

    (part,) = await sending(controller, transport, story())
    assert part.complete and part.pauses == 1
    assert [*dict.fromkeys(light.group for light in transport.lights)] == ["239.0.0.1", "239.0.0.2"]


async def test_parts_side_by_side(controller: ScriptedController) -> None:
    async def story() -> None:
        controller.grant(0, receivers=("b", "c"), lease_ms=5000)
        await asyncio.sleep(0.05)
        controller.grant(1, receivers=("d",), lease_ms=5000)

    first, second = await sending(controller, Transport(), story())
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

    (part,) = await sending(controller, Transport(), story())
    assert part.complete and part.state == PartState.DONE


async def test_who_loses_the_request_stops_sending(controller: ScriptedController) -> None:
    async def story() -> None:
        controller.grant()
        await controller.until(1)
        controller.state = PartState.EXPIRED
        controller.say(EventKind.ENDED, state=PartState.EXPIRED)

    (part,) = await sending(controller, Transport(), story())
    assert not part.complete and part.state == PartState.EXPIRED and part.reason.startswith("reason of")
    assert part.result is not None and part.result.receivers[0].reason == part.reason


async def test_a_sender_that_cannot_send_withdraws(controller: ScriptedController) -> None:
    def broken(receivers: Sequence[str], route: Route) -> TransferResult:
        raise LightPathError("the light path takes no datagrams")

    controller.grant()
    async with asyncio.timeout(5):
        (part,) = await send(controller, REQUEST, broken)
    assert controller.withdrawn and part.result is None and part.reason == "the light path takes no datagrams"


async def test_a_wrong_grant_is_the_controllers_fault_and_stops_the_transport(controller: ScriptedController) -> None:
    transport = Transport()
    controller.grant(first_byte=1)
    with pytest.raises(InvalidGrantError):
        await send(controller, REQUEST, transport)
    await eventually_async(lambda: transport.result, "the transport's end")
    assert transport.result is not None and transport.result.complete == 0


async def test_a_request_that_never_has_light(controller: ScriptedController) -> None:
    controller.state = PartState.EXPIRED
    controller.say(EventKind.ENDED, state=PartState.EXPIRED)
    async with asyncio.timeout(5):
        assert await send(controller, REQUEST, Transport()) == []


async def test_what_the_controller_refuses_is_raised_as_it_is() -> None:
    class Refusing(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            raise Rejected("unknown_host", "nobody knows a")

    with pytest.raises(Rejected, match="nobody"):
        await send(Refusing(), REQUEST, Transport())


async def test_a_cancelled_send_leaves_no_request_and_no_transfer(controller: ScriptedController) -> None:
    transport = Transport(middle=1)
    controller.grant(lease_ms=60_000)
    sending = asyncio.ensure_future(send(controller, REQUEST, transport))
    await eventually_async(lambda: transport.ways, "the transfer to begin")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await eventually_async(lambda: transport.result, "the transport's end")
    assert controller.withdrawn and transport.ways[-1] == "end"
