"""Sessions to the emulated switch that are closed during a change, or right after it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from optical_switch.errors import UnreachableError
from optical_switch.model import Circuit
from optical_switch.netconf.messages import RpcReply
from optical_switch.netconf.netconf_session import NetconfSwitchSession
from optical_switch.session import BatchResult, SwitchSession
from tests.support.switch_beds import netconf

BATCH = [Circuit(1, 2), Circuit(2, 1), Circuit(3, 3)]
LATER = Circuit(4, 4)
HANGING = 30.0


def after_writes(session: SwitchSession, count: int) -> asyncio.Event:
    """Return an event that is set once the session has written requests `count` times more."""
    assert isinstance(session, NetconfSwitchSession) and session._link is not None
    send, reached, writes = session._link.send, asyncio.Event(), 0

    def counting(operations: Sequence[str]) -> Sequence[asyncio.Future[RpcReply]]:
        nonlocal writes
        writes += len(operations) > 0
        if writes == count:
            reached.set()
        return send(operations)

    session._link.send = counting  # type: ignore[method-assign, assignment]
    return reached


async def circuits(session: SwitchSession) -> set[Circuit]:
    return {reading.circuit for reading in await session.read_circuits()}


@pytest.mark.parametrize("writes", [1, 2, 3], ids=["locks", "edit and commit", "unlocks"])
async def test_close_during_a_change_leaves_it_whole_and_no_lock(tmp_path: Path, writes: int) -> None:
    async with netconf(tmp_path, HANGING) as bed:
        session, following = bed.access.new_session(), bed.access.new_session()
        await session.open()
        reached = after_writes(session, writes)
        change = asyncio.create_task(session.apply([], BATCH))
        await reached.wait()
        await session.close()
        with contextlib.suppress(UnreachableError):
            await change
        await following.open()
        try:
            found = await circuits(following)
            assert found in (set(), set(BATCH)) and (writes > 1 or not found)
            assert await following.apply([], [LATER]) == BatchResult()
            assert await circuits(following) == found | {LATER} == bed.paths.lit
        finally:
            await following.close()


async def test_reported_change_remains_when_the_session_is_cut(tmp_path: Path) -> None:
    async with netconf(tmp_path, HANGING) as bed:
        session, following = bed.access.new_session(), bed.access.new_session()
        await session.open()
        assert await session.apply([], BATCH) == BatchResult()
        bed.cut()
        await session.wait_closed()
        await following.open()
        try:
            assert await circuits(following) == set(BATCH) == bed.paths.lit
            assert await following.apply(BATCH, [LATER]) == BatchResult()
        finally:
            await following.close()
