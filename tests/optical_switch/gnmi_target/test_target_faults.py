"""Injected faults, each as a client and the databases show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import grpc
import pytest

from optical_switch.emulator.faults import Faults
from optical_switch.emulator.timing import Clock
from optical_switch.model import Circuit, Port
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    CONFIG,
    RawClient,
    StateView,
    connected,
    cross_connect,
    path,
    redis_of,
    refused,
    subscription,
    update,
    watching,
)
from tests.support.waiting import HANGING, eventually_async

if TYPE_CHECKING:
    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget
    from tests.optical_switch.gnmi_target.conftest import Serve

Code = grpc.StatusCode
SHORT = 0.2
"""Seconds that a client waits for an answer which never comes."""


@pytest.fixture
async def view(client: RawClient) -> AsyncIterator[StateView]:
    async with watching(client) as one:
        yield one


async def test_refuse_all_refuses_and_does_nothing(client: RawClient, target: SonicOcsTarget) -> None:
    target.faults.refuse_all = True
    with refused(Code.ABORTED, "injected"):
        await client.set(cross_connect("1A-2B"))
    with refused(Code.ABORTED):
        await client.capabilities()
    call = client.subscribe()
    await call.write(subscription(path("OCS_PORT_TABLE")))
    with refused(Code.ABORTED):
        await call.read()
    target.faults.refuse_all = False
    assert await client.value(path("OCS_CROSS_CONNECT")) == {}


async def test_silent_neither_answers_nor_acts(client: RawClient, target: SonicOcsTarget) -> None:
    target.faults.silent = True
    with refused(Code.DEADLINE_EXCEEDED):
        await client.set(cross_connect("1A-2B"), timeout=SHORT)
    async with redis_of(target, 4) as config:
        assert await config.keys() == []


async def test_lost_answer_of_a_change_that_is_done(client: RawClient, target: SonicOcsTarget, view: StateView) -> None:
    target.faults.lose_answer = True
    setting = asyncio.ensure_future(client.set(cross_connect("1A-2B")))
    await view.until_port("1A", "connected")
    # Readings are answered.
    assert await client.value(path("OCS_CROSS_CONNECT", "1A-2B", "a_side")) == "1A"
    assert not setting.done()
    setting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await setting


async def test_cut_before_answer_cuts_this_connection_only(target: SonicOcsTarget) -> None:
    target.faults.cut_before_answer = True
    async with connected(target.address) as client, connected(target.address) as other, watching(other) as others:
        async with watching(client) as view:
            with refused(Code.UNAVAILABLE):
                await client.set(cross_connect("1A-2B"))
            with refused(Code.UNAVAILABLE):
                await view.until(lambda leaves: False)
        await others.until_port("1A", "connected")
        # A new connection is served.
        assert await client.value(path("OCS_CROSS_CONNECT", "1A-2B", "a_side")) == "1A"


async def test_cut_ends_all_connections_and_no_circuit(
    client: RawClient, target: SonicOcsTarget, view: StateView
) -> None:
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    target.cut()
    with refused(Code.UNAVAILABLE):
        await view.read()
    assert target.hardware.circuits == (Circuit(1, 2),)


async def test_answers_are_delayed_by_the_clock(serve: Serve) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    faults = Faults(answer_delay=7.0)
    async with serve(faults=faults, clock=Clock(sleep=sleep)) as target, connected(target.address) as client:
        await client.capabilities()
        await client.set(cross_connect("1A-2B"))
        with refused(Code.NOT_FOUND):
            await client.get(path("OCS_PORT", "1A"))
        async with watching(client):
            assert slept.count(7.0) == 4


async def test_sessions_are_limited(target: SonicOcsTarget, client: RawClient) -> None:
    target.faults.max_sessions = 1
    async with watching(client):
        call = client.subscribe()
        await call.write(subscription(path("OCS_PORT_TABLE")))
        with refused(Code.RESOURCE_EXHAUSTED, "1 of 1"):
            await call.read()
    # The end of a session makes room, as soon as the target has seen it.
    async with asyncio.timeout(HANGING):
        while True:
            try:
                async with watching(client):
                    break
            except grpc.aio.AioRpcError as error:
                assert error.code() is Code.RESOURCE_EXHAUSTED


async def test_stuck_mirrors_fail_their_port_only(client: RawClient, target: SonicOcsTarget, view: StateView) -> None:
    target.faults.stuck_inputs.add(1)
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"))
    await view.until_port("1A", "failed")
    await view.until_port("2A", "connected")
    assert view.cross_connect("1A-2B") == {"status": "disabled"}
    assert view.port("2B")["oper_status"] == "blocked"
    # A row that is written again is tried again.
    target.faults.stuck_inputs.clear()
    await client.set(delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
    await view.until_port("1A", "blocked")
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")


async def test_dead_port_fails_a_circuit_that_is_set(
    client: RawClient, target: SonicOcsTarget, view: StateView
) -> None:
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    target.faults.dead_ports.add(Port("out", 2))
    target.hardware.changed()
    await view.until_port("2B", "failed")
    assert view.port("1A")["oper_status"] == "blocked"
    assert "insertion_loss_dB" not in view.cross_connect("1A-2B")
    target.faults.dead_ports.clear()
    target.hardware.changed()
    await view.until_port("2B", "connected")


@pytest.mark.parametrize(("kind", "port"), [("refused_inputs", "2A"), ("refused_outputs", "1B")])
async def test_refused_port_disables_its_cross_connect_only(
    client: RawClient, target: SonicOcsTarget, view: StateView, kind: str, port: str
) -> None:
    await client.set(cross_connect("4A-4B"))
    await view.until_port("4A", "connected")
    getattr(target.faults, kind).add(int(port[0]))
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"), delete=[path("OCS_CROSS_CONNECT", "4A-4B")])
    await view.until_status("2A-1B", "disabled")
    await view.until_port(port, "failed")
    # The other circuits of the change are set and removed all the same, as a device that takes row by row does.
    await view.until_port("1A", "connected")
    await view.until_port("4A", "blocked")
    assert target.hardware.circuits == (Circuit(1, 2),)


async def test_partial_bulk_sets_all_other_circuits(client: RawClient, target: SonicOcsTarget, view: StateView) -> None:
    target.faults.partial_bulk = True
    target.faults.refused_inputs.add(2)
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"), cross_connect("3A-3B"))
    await view.until_port("1A", "connected")
    await view.until_port("2A", "failed")
    await view.until_port("3A", "connected")
    assert view.cross_connect("2A-1B") == {"status": "disabled"}


async def test_slow_mirrors_tune_longer(serve: Serve) -> None:
    moved = asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds > 5:
            await moved.wait()

    times = iter(range(1_000_000))
    clock = Clock(now=lambda: 0.0 if not moved.is_set() else 100.0 + next(times), sleep=sleep)
    async with (
        serve(faults=Faults(slow_inputs={1: 10.0}), clock=clock) as target,
        connected(target.address) as client,
        watching(client) as view,
    ):
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "tuning")
        assert target.hardware.busy
        moved.set()
        await view.until_port("1A", "connected")


async def test_late_list_shows_a_circuit_late(serve: Serve) -> None:
    late = asyncio.Event()
    now = [0.0]

    async def sleep(seconds: float) -> None:
        if seconds == 5.0:
            await late.wait()

    clock = Clock(now=lambda: now[0], sleep=sleep)
    async with (
        serve(faults=Faults(late_list=5.0), clock=clock) as target,
        connected(target.address) as client,
        watching(client) as view,
    ):
        await client.set(cross_connect("1A-2B"))
        await eventually_async(lambda: target.hardware.crossbar.circuits == (Circuit(1, 2),), "the circuit")
        await view.until_port("1A", "tuning")
        assert target.hardware.circuits == ()
        now[0] = 6.0
        late.set()
        await view.until_port("1A", "connected")


async def test_extra_loss_is_measured(client: RawClient, target: SonicOcsTarget, view: StateView) -> None:
    """The model: a port is `connected` within 0.5 dB of its target, else `tuning`."""
    target.faults.extra_loss_db = {Circuit(1, 2): 0.4, Circuit(2, 1): 2.0}
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"))
    await view.until_port("1A", "connected")
    await view.until(lambda _: view.cross_connect("2A-1B").get("insertion_loss_dB") == "3.50")
    assert view.cross_connect("1A-2B")["insertion_loss_dB"] == "1.90"
    assert view.port("1B")["oper_status"] == "tuning"
    target.faults.extra_loss_db.clear()
    target.hardware.changed()
    await view.until_port("1B", "connected")


async def test_light_paths_that_fail_are_reported_and_survived(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    failing = True

    async def apply(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
        if failing:
            raise RuntimeError("tc failed")

    async with serve(apply=apply) as target, connected(target.address) as client, watching(client) as view:
        await client.set(cross_connect("1A-2B"))
        await view.until_status("1A-2B", "disabled")
        assert "could not change its light paths" in caplog.text
        failing = False
        await client.set(cross_connect("2A-1B"))
        await view.until_port("2A", "connected")
        await client.set(update(path("OCS_CROSS_CONNECT", "1A-2B", "a_side"), "1A"))
        await view.until_port("1A", "connected")


async def test_light_path_that_cannot_be_removed_does_not_stop_others(serve: Serve) -> None:
    async def apply(removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
        if Circuit(1, 2) in removed:
            raise RuntimeError("tc failed")

    async with serve(apply=apply) as target, connected(target.address) as client, watching(client) as view:
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "connected")
        await client.set(delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
        async with watching(client, path("OCS_CROSS_CONNECT"), prefix=CONFIG) as config:
            await config.until(lambda leaves: not leaves)
        assert target.hardware.circuits == (Circuit(1, 2),)
        assert view.cross_connect("1A-2B")["status"] == "enabled"


async def test_poll_is_dropped_by_a_silent_target(client: RawClient, target: SonicOcsTarget) -> None:
    call = client.subscribe()
    await call.write(subscription(path("OCS_PORT_TABLE", "1A"), mode=gnmi.SubscriptionList.POLL))
    polled = StateView(call)
    await polled.sync()
    target.faults.silent = True
    await call.write(gnmi.SubscribeRequest(poll=gnmi.Poll()))
    reading = asyncio.ensure_future(polled.read())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(reading), SHORT)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
