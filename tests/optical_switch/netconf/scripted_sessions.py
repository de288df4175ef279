"""Sessions to scripted devices in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from optical_switch.drivers import SwitchTarget
from optical_switch.netconf.netconf_session import NetconfSwitchSession
from optical_switch.netconf.polatis import PortNumbering
from optical_switch.session import Notice
from tests.optical_switch.netconf.scripted_device import MemoryTransport, ScriptedDevice
from tests.support.waiting import eventually_async

HANGING = 30.0
TARGET = SwitchTarget("ocs1", "ocs1.example.org", 830, 16, 16, HANGING)
CHANGE = ["lock running", "lock candidate", "edit-config candidate", "commit"]
UNLOCK = ["unlock candidate", "unlock running"]


def session_to(device: ScriptedDevice, target: SwitchTarget = TARGET) -> NetconfSwitchSession:
    return NetconfSwitchSession(target, MemoryTransport(device), PortNumbering(17))


@asynccontextmanager
async def opened(device: ScriptedDevice, notices: list[Notice] | None = None) -> AsyncIterator[NetconfSwitchSession]:
    session = session_to(device)
    if notices is not None:
        session.subscribe(notices.append)
    await session.open()
    device.log.clear()
    try:
        yield session
    finally:
        await session.close()


async def settled(device: ScriptedDevice, log: Sequence[str]) -> None:
    await eventually_async(lambda: len(device.log) >= len(log), "the requests to arrive")
    assert device.log == list(log)
