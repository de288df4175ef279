"""Grants, pauses and parts joined with a data plane: `auto`, which uses the pipeline without a grant, and optical only.

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
    """A controller of one request, whose events the test sends."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reported: list[tuple[int, int]] = []
        self.finished: dict[int, TransferReport] = {}
        self.state = PartState.PENDING
        self.withdrawn = False
        self.busy_finishes = 0
        self._changed = asyncio.Event()

    def notify(self, kind: int, part: int = 0, grant: Grant | None = None, state: int | None = None) -> None:
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
        self.notify(kind, part, grant)

    async def until(self, count: int) -> int:
        """Wait until the sender has reported `count` times; return the last position."""
        await eventually_async(lambda: len(self.reported) >= count, "a report of the sender")
        return self.reported[-1][1]

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
        self.reported.append((extension.part, extension.progressBytes))
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
        self.notify(EventKind.ENDED, part, state=PartState.DONE)
        return await self.status(key)

    async def withdraw(self, key: str) -> RequestStatus:
        self.withdrawn, self.state = True, PartState.WITHDRAWN
        self.notify(EventKind.ENDED, state=PartState.WITHDRAWN)
        return await self.status(key)


CHAIN = Chain(("b",))
REQUEST = MulticastRequest(key="k", sender="a", receivers=["b"], bytes=SIZE, mayPause=True)


class Transport:
    """Move bytes at `chain_rate` or the optical rate, as the data plane does; `transports` lists the used ones.

    The optical interface fails at byte `breaks_at`. The first optical phase delivers up to `middle`.
    """

    def __init__(self, chain_rate: float = RATE / 10, breaks_at: int = SIZE, middle: int = SIZE) -> None:
        self.transports: list[str] = []
        self.lights: list[OpticalChoice] = []
        self.result: TransferResult | None = None
        self._loop = asyncio.get_running_loop()
        self._chain_rate, self._breaks_at, self._middle = chain_rate, breaks_at, middle

    def __call__(self, receivers: Sequence[str], route: Route) -> TransferResult:
        current: Order = route.first
        reason, before = "", self._loop.time()
        self._note(current)
        while route.reached < SIZE and not reason:
            self._loop.pause(0.002)
            while (order := route.take_order()) is not None:
                current = order
                self._note(order)
                reason = order.reason if isinstance(order, GiveUp) else reason
            if isinstance(current, OpticalChoice) and not route.broken and route.reached >= self._breaks_at:
                assert route.otherwise is not None
                current = route.otherwise
                self._note(current)
                route.light_broke("the interface is down")
            now = self._loop.time()
            stop = self._middle if self.transports == ["light"] else SIZE
            route.reached = min(stop, route.reached + self._moved(current, before, now))
            before = now
        outcomes = tuple(ReceiverOutcome(name, not reason, reason, 0, None) for name in receivers)
        self.result = TransferResult("f", 1, SIZE, "", 0.3, 30, 0, outcomes)
        return self.result

    def _moved(self, order: Order, before: float, now: float) -> int:
        if isinstance(order, OpticalChoice):
            return int(max(0.0, min(now, order.until) - before) * order.rate / 8)
        return int((now - before) * self._chain_rate / 8) if isinstance(order, Chain) else 0

    def _note(self, order: Order) -> None:
        if isinstance(order, OpticalChoice):
            self.lights.append(order)
        name = {OpticalChoice: "light", Chain: "chain", OpticalPause: "dark", GiveUp: "end"}[type(order)]
        if not self.transports or self.transports[-1] != name:
            self.transports.append(name)


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
    running = asyncio.ensure_future(story)
    # An immediate grant precedes the first call.
    await asyncio.sleep(0)
    async with asyncio.timeout(8):
        delivered = await deliver(controller, REQUEST, transport, CHAIN)
        await running
    return delivered


async def nothing_happens() -> None:
    """Send nothing, as a controller without news."""


@pytest.fixture
def controller() -> ScriptedController:
    return ScriptedController()


async def test_immediate_grant_uses_only_optical_transport(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["light"] and delivered.sent.complete and not delivered.refused
    assert controller.finished[0].bytesSent == SIZE and not controller.withdrawn


async def test_pipeline_serves_until_grant_then_optical_takes_over(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        await asyncio.sleep(2 * GRANT_SECONDS)
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["chain", "light"] and delivered.sent.complete
    assert controller.finished[0].bytesSent == SIZE


async def test_small_data_use_pipeline_without_waiting_for_grant(
    controller: ScriptedController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_SMALL_BYTES", SIZE)
    transport = Transport(RATE)
    began = asyncio.get_running_loop().time()
    delivered = await delivering(controller, transport, nothing_happens())
    assert transport.transports == ["chain"] and delivered.sent.complete
    assert asyncio.get_running_loop().time() - began < SIZE * 8 / RATE + GRANT_SECONDS / 2


async def test_pipeline_completes_without_grant_and_request_is_withdrawn(controller: ScriptedController) -> None:
    transport = Transport(RATE)
    delivered = await delivering(controller, transport, nothing_happens())
    assert transport.transports == ["chain"] and delivered.sent.complete
    assert controller.withdrawn, "an obsolete request blocks others"


async def test_late_grant_is_finished_without_switching(controller: ScriptedController) -> None:
    transport = Transport(RATE / 1.5)

    async def story() -> None:
        await asyncio.sleep(0.35)
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["chain"] and delivered.sent.complete
    assert 0 in controller.finished and delivered.sent.state == PartState.DONE


async def test_pause_switches_to_pipeline_until_next_grant(controller: ScriptedController) -> None:
    transport = Transport(middle=SIZE // 2)

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await asyncio.sleep(0.1)
        controller.notify(EventKind.PAUSED)
        exact = await controller.until(1)
        await asyncio.sleep(0.05)
        controller.grant(first_byte=exact, lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert (
        transport.transports == ["light", "chain", "light"] and delivered.sent.complete and delivered.sent.pauses == 1
    )


async def test_expired_grant_switches_to_pipeline(controller: ScriptedController) -> None:
    transport = Transport(RATE, middle=SIZE // 2)

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await asyncio.sleep(0.1)
        controller.state = PartState.EXPIRED
        controller.notify(EventKind.ENDED, state=PartState.EXPIRED)

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["light", "chain"] and delivered.sent.complete
    assert delivered.sent.state == PartState.EXPIRED


@pytest.mark.parametrize(
    "error", [Rejected("unknown_host", "No such host."), ControllerUnreachableError("here", "connection refused")]
)
async def test_pipeline_serves_if_controller_rejects_or_is_unreachable(
    error: Exception, controller: ScriptedController
) -> None:
    async def refuse(_: MulticastRequest) -> None:
        raise error

    controller.submit = refuse  # type: ignore[assignment, method-assign]
    transport = Transport(RATE)
    delivered = await delivering(controller, transport, nothing_happens())
    assert transport.transports == ["chain"] and delivered.sent.complete and delivered.refused


async def test_controller_loss_during_transfer_switches_to_pipeline(controller: ScriptedController) -> None:
    transport = Transport(RATE, middle=SIZE // 2)
    calls = 0

    async def story() -> None:
        controller.grant(lease_ms=5000)
        await asyncio.sleep(0.1)

        async def lost(*_: object) -> None:
            nonlocal calls
            calls += 1
            raise ControllerUnreachableError("here", "the connection was lost")

        controller.await_event = controller.withdraw = lost  # type: ignore[assignment, method-assign]

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["light", "chain"] and delivered.sent.complete and calls


async def test_optical_send_failure_finishes_grant_and_uses_pipeline(controller: ScriptedController) -> None:
    transport = Transport(RATE, breaks_at=SIZE // 3)

    async def story() -> None:
        controller.grant(lease_ms=5000)

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["light", "chain"] and delivered.sent.complete
    assert delivered.refused == "the interface is down"
    assert SIZE // 3 <= controller.finished[0].bytesSent < SIZE, "released at once for other requests"


async def test_optical_send_failure_prevents_further_optical_phases(controller: ScriptedController) -> None:
    transport = Transport(RATE / 2, breaks_at=SIZE // 3)

    async def story() -> None:
        controller.grant(lease_ms=5000)
        async with asyncio.timeout(5):
            while transport.transports != ["light", "chain"]:
                controller.notify(EventKind.PAUSED)
                await asyncio.sleep(0.02)

    delivered = await delivering(controller, transport, story())
    assert transport.transports == ["light", "chain"] and delivered.sent.complete and controller.withdrawn


@given(
    remaining=st.integers(0, 10**12),
    light=st.floats(1e6, 1e12),
    chain=st.floats(1e6, 1e12),
)
def test_optical_transport_is_chosen_if_and_only_if_it_ends_earlier(remaining: int, light: float, chain: float) -> None:
    optical_seconds = SWITCH_SECONDS + remaining * 8 / (light * 0.94)
    assert light_is_earlier(remaining, light, chain) == (optical_seconds < remaining * 8 / chain)
    assert light_is_earlier(remaining, light, None)
    more = [light_is_earlier(size, light, chain) for size in (remaining, 2 * remaining, 4 * remaining)]
    assert all(later or not earlier for earlier, later in pairwise(more)), "a larger transfer never favors the pipeline"


@pytest.mark.parametrize("granted", [False, True])
async def test_cancelled_delivery_withdraws_request_and_stops_transfer(
    controller: ScriptedController, granted: bool
) -> None:
    transport = Transport(chain_rate=1.0, breaks_at=SIZE, middle=1)
    if granted:
        controller.grant(lease_ms=60_000)
    delivering = asyncio.ensure_future(deliver(controller, REQUEST, transport, CHAIN))
    await eventually_async(lambda: transport.transports, "the transfer to begin")
    delivering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert controller.withdrawn
    assert transport.transports[-1] == "end", "its receivers are notified"


async def test_delivery_cancelled_during_submit_withdraws_request() -> None:
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


async def test_reused_key_of_another_client_is_not_withdrawn() -> None:
    class Taken(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            raise KeyReused("k")

    controller = Taken()
    delivered = await deliver(controller, REQUEST, Transport(RATE), CHAIN)
    assert delivered.refused and not controller.withdrawn


@pytest.mark.parametrize("call", ["finish", "extend"])
async def test_failed_report_to_controller_ends_only_optical_phase(
    controller: ScriptedController, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = Transport()

    async def away(*_: object) -> RequestStatus:
        raise ControllerUnreachableError(parse_address("127.0.0.1:1"), "the connection was lost")

    async def story() -> None:
        controller.grant(lease_ms=100 if call == "extend" else 5000)

    monkeypatch.setattr(controller, call, away)
    delivered = await delivering(controller, transport, story())
    assert delivered.sent.complete
    assert transport.transports[0] == "light"
    assert "127.0.0.1:1" in delivered.sent.reason


# ------------------------------------------------------------------------------------- optical only: `send`


async def sending(controller: ScriptedController, transport: Transport, story: object) -> list[PartSent]:
    running = asyncio.ensure_future(story)  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        sent = await send(controller, REQUEST, transport)
        await running
    return sent


async def test_sender_reports_progress_once_per_renewed_lease(controller: ScriptedController) -> None:
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
    reached = [reached for _, reached in controller.reported]
    assert reached == sorted(reached) and len(set(reached)) == 3 and reached[0] <= 10_000
    assert controller.finished[0].bytesSent == SIZE and controller.finished[0].failedReceivers == []


async def test_sender_resumes_after_pause_in_new_group(controller: ScriptedController) -> None:
    transport = Transport()

    async def story() -> None:
        controller.grant()
        await controller.until(1)
        await asyncio.sleep(0.06)
        controller.notify(EventKind.PAUSED)
        exact = await controller.until(2)
        await asyncio.sleep(0.1)
        assert 5_000 <= exact <= 11_000
        controller.grant(first_byte=exact, lease_ms=5000, group="239.0.0.2")

    (part,) = await sending(controller, transport, story())
    assert part.complete and part.pauses == 1
    assert [*dict.fromkeys(light.group for light in transport.lights)] == ["239.0.0.1", "239.0.0.2"]


async def test_sender_serves_two_parts_in_parallel(controller: ScriptedController) -> None:
    async def story() -> None:
        controller.grant(0, receivers=("b", "c"), lease_ms=5000)
        await asyncio.sleep(0.05)
        controller.grant(1, receivers=("d",), lease_ms=5000)

    first, second = await sending(controller, Transport(), story())
    assert (first.receivers, second.receivers) == (("b", "c"), ("d",))
    assert first.complete and second.complete and set(controller.finished) == {0, 1}


async def test_finish_rejected_during_pause_is_repeated_after_next_grant(controller: ScriptedController) -> None:
    controller.busy_finishes = 1

    async def story() -> None:
        controller.grant(lease_ms=2000)
        await eventually_async(lambda: not controller.busy_finishes, "the finish")
        controller.notify(EventKind.PAUSED)
        assert await controller.until(1) == SIZE
        controller.grant(first_byte=SIZE)

    (part,) = await sending(controller, Transport(), story())
    assert part.complete and part.state == PartState.DONE


async def test_sender_stops_when_request_expires(controller: ScriptedController) -> None:
    async def story() -> None:
        controller.grant()
        await controller.until(1)
        controller.state = PartState.EXPIRED
        controller.notify(EventKind.ENDED, state=PartState.EXPIRED)

    (part,) = await sending(controller, Transport(), story())
    assert not part.complete and part.state == PartState.EXPIRED and part.reason.startswith("reason of")
    assert part.result is not None and part.result.receivers[0].reason == part.reason


async def test_sender_with_broken_light_path_withdraws_request(controller: ScriptedController) -> None:
    def broken(receivers: Sequence[str], route: Route) -> TransferResult:
        raise LightPathError("the light path takes no datagrams")

    controller.grant()
    async with asyncio.timeout(5):
        (part,) = await send(controller, REQUEST, broken)
    assert controller.withdrawn and part.result is None and part.reason == "the light path takes no datagrams"


async def test_invalid_grant_raises_error_and_stops_transport(controller: ScriptedController) -> None:
    transport = Transport()
    controller.grant(first_byte=1)
    with pytest.raises(InvalidGrantError):
        await send(controller, REQUEST, transport)
    await eventually_async(lambda: transport.result, "the transport's end")
    assert transport.result is not None and transport.result.complete == 0


async def test_send_returns_no_parts_if_request_expires_without_grant(controller: ScriptedController) -> None:
    controller.state = PartState.EXPIRED
    controller.notify(EventKind.ENDED, state=PartState.EXPIRED)
    async with asyncio.timeout(5):
        assert await send(controller, REQUEST, Transport()) == []


async def test_send_raises_rejection_of_controller() -> None:
    class Refusing(ScriptedController):
        async def submit(self, request: MulticastRequest) -> RequestStatus:
            raise Rejected("unknown_host", "host a is unknown")

    with pytest.raises(Rejected, match="host a is unknown"):
        await send(Refusing(), REQUEST, Transport())


async def test_cancelled_send_withdraws_request_and_stops_transfer(controller: ScriptedController) -> None:
    transport = Transport(middle=1)
    controller.grant(lease_ms=60_000)
    sending = asyncio.ensure_future(send(controller, REQUEST, transport))
    await eventually_async(lambda: transport.transports, "the transfer to begin")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await eventually_async(lambda: transport.result, "the transport's end")
    assert controller.withdrawn and transport.transports[-1] == "end"
