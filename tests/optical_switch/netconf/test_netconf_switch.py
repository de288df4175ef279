"""A session to a scripted device in memory: opening, readings, alarms and closing."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import (
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SwitchUsageError,
    UnreachableError,
)
from optical_switch.model import Alarm, Circuit, CircuitReading, CircuitState, Port, PortDescription, PowerReading
from optical_switch.netconf.netconf_session import NetconfSwitchSession
from optical_switch.netconf.polatis import POLATIS_SWITCH, PortNumbering
from optical_switch.session import AttenuatingSession, BatchResult, Notice
from tests.optical_switch.netconf.scripted_device import (
    OK,
    MemoryTransport,
    ScriptedDevice,
    container,
    cross_connects,
    data,
    error,
)
from tests.optical_switch.netconf.scripted_sessions import TARGET, opened, session_to
from tests.support.waiting import eventually_async

VOA = data(container("voa", "<port><port-id>17</port-id></port>"))


# -------------------------------------------------------------------------------------------------------- opening


@pytest.mark.parametrize(
    ("features", "atomic"),
    [
        (["candidate:1.0"], True),
        (["writable-running:1.0"], False),
        (["writable-running:1.0", "rollback-on-error:1.0"], True),
    ],
)
async def test_capabilities_follow_from_the_hello(features: list[str], atomic: bool) -> None:
    async with opened(ScriptedDevice(*features, get_config=VOA)) as session:
        found = session.capabilities
        assert (found.atomic, found.one_transaction, found.confirms, found.light) == (atomic, True, True, "powers")
        assert found.attenuates
        assert isinstance(session, AttenuatingSession)


@pytest.mark.parametrize("voa", [data(), error("unknown-element")])
async def test_device_without_attenuators_does_not_attenuate(voa: str) -> None:
    async with opened(ScriptedDevice(get_config_voa=voa)) as session:
        assert not session.capabilities.attenuates


async def test_old_framing_is_used_with_a_device_that_has_no_other() -> None:
    device = ScriptedDevice(chunks=False)
    async with opened(device) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()


@pytest.mark.parametrize(
    ("device", "kind", "message"),
    [
        (ScriptedDevice("startup:1.0"), ProtocolError, "read-only"),
        (ScriptedDevice(get_config=data("<x/>") + "<"), ProtocolError, "no XML"),
        (
            ScriptedDevice(get_config=None),
            UnreachableError,
            "ocs1.example.org:830 opens no NETCONF session: .* get-config",
        ),
    ],
    ids=["read-only", "no XML", "no answer"],
)
async def test_failed_open_leaves_no_connection(device: ScriptedDevice, kind: type[Exception], message: str) -> None:
    transport = MemoryTransport(device)
    target = SwitchTarget("ocs1", "ocs1.example.org", 830, 16, 16, 0.05)
    with pytest.raises(kind, match=message):
        await NetconfSwitchSession(target, transport, PortNumbering(17)).open()
    assert not transport.is_open


async def test_cancelled_open_leaves_no_connection() -> None:
    device = ScriptedDevice(get_config=None)
    transport = MemoryTransport(device)
    opening = asyncio.create_task(NetconfSwitchSession(TARGET, transport, PortNumbering(17)).open())
    await eventually_async(lambda: device.log, "the first request")
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not transport.is_open


async def test_connection_lost_while_opening_is_reported_once() -> None:
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    device = ScriptedDevice(create_subscription=None, get_config=None)
    transport = MemoryTransport(device)
    session = NetconfSwitchSession(TARGET, transport, PortNumbering(17))
    session.subscribe(lambda notice: None)
    opening = asyncio.create_task(session.open())
    await eventually_async(lambda: len(device.log) == 2, "both requests")
    transport.abort()
    with pytest.raises(UnreachableError, match="the switch closed the connection"):
        await opening
    opening = session = transport = device = None
    await asyncio.sleep(0)  # the event loop itself holds the exception until then
    gc.collect()
    assert faults == []


async def test_session_opens_again_after_it_was_lost() -> None:
    device = ScriptedDevice()
    transport = MemoryTransport(device)
    session = NetconfSwitchSession(TARGET, transport, PortNumbering(17))
    await session.open()
    await session.open()
    assert device.log == ["get-config voa"], "an open session is not opened again"
    transport.abort()
    assert await session.wait_closed() == "the switch closed the connection"
    transport.device = ScriptedDevice()
    await session.open()
    assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
    await session.close()


async def test_session_that_is_not_open_is_a_usage_error() -> None:
    session = session_to(ScriptedDevice())
    for call in (session.read_circuits(), session.apply([], [Circuit(1, 1)]), session.wait_closed()):
        with pytest.raises(SwitchUsageError, match="is not open"):
            await call
    await session.close()


# ------------------------------------------------------------------------------------------------------- readings


async def test_circuits_ports_and_powers_are_read() -> None:
    status = container("port-config", "<port><port-id>18</port-id><status>DISABLED</status><label>x</label></port>")
    power = container("opm-power", "<port><port-id>3</port-id><power>-4.25</power></port>")
    device = ScriptedDevice(
        get_config_cross_connects=data(cross_connects((1, 17), (2, 18))),
        get_port_config=data(status),
        get_opm_power=data(power),
    )
    async with opened(device) as session:
        assert await session.read_circuits() == [
            CircuitReading(Circuit(1, 1), CircuitState.CONNECTED),
            CircuitReading(Circuit(2, 2), CircuitState.ABSENT, "port 18 is DISABLED"),
        ]
        assert await session.read_ports() == [PortDescription(Port("out", 2), "18", "x")]
        assert await session.read_powers() == [PowerReading(Port("in", 3), -4.25)]
        assert await session.read_losses() == []
        assert device.log == ["get-config cross-connects", "get port-config", "get port-config", "get opm-power"]


async def test_refused_reading_leaves_the_session_open() -> None:
    device = ScriptedDevice(get_opm_power=error("access-denied"))
    async with opened(device) as session:
        with pytest.raises(RefusedError, match="access-denied: refused"):
            await session.read_powers()
        assert await session.read_circuits() == []


async def test_reading_without_data_ends_the_session() -> None:
    async with opened(ScriptedDevice(get_opm_power=OK)) as session:
        with pytest.raises(ProtocolError, match="without data"):
            await session.read_powers()
        assert "without data" in await session.wait_closed()


async def test_lost_connection_fails_all_waiting_callers() -> None:
    device = ScriptedDevice(get=None)
    async with opened(device) as session:
        waiting = [asyncio.create_task(read()) for read in (session.read_circuits, session.read_powers)]
        await eventually_async(lambda: len(device.log) == 3, "the requests")
        transport = session._transport
        assert isinstance(transport, MemoryTransport)
        transport.abort()
        for task in waiting:
            with pytest.raises(UnreachableError, match="the switch closed the connection"):
                await task
        assert await session.wait_closed() == "the switch closed the connection"


# --------------------------------------------------------------------------------------------------------- alarms

ALARM = f'<port-power-alarm xmlns="{POLATIS_SWITCH}"><port-id>3</port-id></port-power-alarm>'


async def test_alarms_reach_the_listener() -> None:
    notices: list[Notice] = []
    device = ScriptedDevice()
    async with opened(device, notices):
        assert device.requests[-1][0].text == "Polatis"
        device.notify(ALARM)
        device.notify("<unknown-event/>")
        device.notify(ALARM.replace("alarm", "clear"))
        await eventually_async(lambda: len(notices) == 2, "the alarms")
    assert notices == [
        Alarm(Port("in", 3), "3", "port-power-alarm", "alarm"),
        Alarm(Port("in", 3), "3", "port-power-alarm", "alarm", cleared=True),
    ]


async def test_nothing_is_subscribed_to_without_a_listener() -> None:
    device = ScriptedDevice()
    session = session_to(device)
    await session.open()
    assert device.log == ["get-config voa"]
    await session.close()


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (ScriptedDevice("candidate:1.0", "notification:1.0"), "does not announce interleave"),
        (ScriptedDevice(create_subscription=error("invalid-value")), "invalid-value: refused"),
        (ScriptedDevice("candidate:1.0"), ""),
    ],
    ids=["no interleave", "no stream", "no notifications"],
)
async def test_session_without_notifications_is_usable(device: ScriptedDevice, reason: str, caplog) -> None:
    caplog.set_level(logging.INFO)
    async with opened(device, []) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
    assert reason in caplog.text and ("reports no alarms" in caplog.text) == bool(reason)


async def test_unreadable_alarm_ends_the_session() -> None:
    device = ScriptedDevice()
    async with opened(device, []) as session:
        device.notify(ALARM.replace("3", "three"))
        assert "is no port" in await session.wait_closed()


async def test_listener_that_raises_leaves_no_caller_waiting() -> None:
    def fail(_notice: Notice) -> None:
        raise KeyError("in the listener")

    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    device = ScriptedDevice(get=None)
    session = session_to(device)
    session.subscribe(fail)
    await session.open()
    reading = asyncio.create_task(session.read_powers())
    await eventually_async(lambda: "get opm-power" in device.log, "the request")
    # Both in the same bytes, the alarm first.
    sent: list[bytes] = []
    deliver, device.send = device.send, sent.append
    device.notify(ALARM)
    device.reply("3", data())
    deliver(b"".join(sent))
    assert await reading == []
    await eventually_async(lambda: faults, "the fault to be reported")
    assert isinstance(faults[0]["exception"], KeyError)
    await session.close()


# -------------------------------------------------------------------------------------------------------- closing


async def test_close_ends_the_session_at_the_device() -> None:
    device = ScriptedDevice()
    session = session_to(device)
    await session.open()
    await session.close()
    await session.close()
    assert device.log[-1] == "close-session" and device.log.count("close-session") == 1
    assert await session.wait_closed() == "closed by us"
    with pytest.raises(OpticalSwitchError, match="closed by us"):
        await session.read_powers()
