"""Changes by a session to a scripted device in memory: circuits, attenuators, locks, faults and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import (
    DeviceBusyError,
    ProtocolError,
    RefusedError,
    SwitchUsageError,
    UnreachableError,
)
from optical_switch.model import Circuit, Port
from optical_switch.session import BatchResult
from tests.optical_switch.netconf.scripted_device import (
    FULL,
    OK,
    ScriptedDevice,
    cross_connects,
    data,
    error,
)
from tests.optical_switch.netconf.scripted_sessions import CHANGE, UNLOCK, opened, session_to, settled
from tests.support.waiting import eventually_async

# -------------------------------------------------------------------------------------------------------- changes


async def test_several_circuits_are_one_edit_and_locks_are_released() -> None:
    device = ScriptedDevice()
    async with opened(device) as session:
        assert await session.apply([], [Circuit(1, 2), Circuit(2, 1)]) == BatchResult()
        await settled(device, CHANGE + UNLOCK)
        [edit] = [one for one in device.requests if one.tag.endswith("edit-config")]
        assert [[leaf.text for leaf in pair] for pair in edit[-1][0]] == [["1", "18"], ["2", "17"]]
        device.log.clear()
        assert await session.apply([], []) == BatchResult()
        assert device.log == []


async def test_circuits_to_be_removed_are_compared_under_the_lock() -> None:
    device = ScriptedDevice(get_config_cross_connects=data(cross_connects((1, 17), (9, 30))))
    async with opened(device) as session:
        assert await session.apply([Circuit(1, 1), Circuit(2, 2)], [Circuit(1, 3)]) == BatchResult()
        await settled(device, [*CHANGE[:2], "get-config cross-connects", *CHANGE[2:], *UNLOCK])


async def test_circuit_that_was_moved_by_another_client_is_not_removed() -> None:
    device = ScriptedDevice(get_config_cross_connects=data(cross_connects((1, 20))))
    async with opened(device) as session:
        result = await session.apply([Circuit(1, 1)], [Circuit(2, 2)])
        assert set(result.refused) == {Circuit(1, 1)} and result.error is not None
        assert str(result.error) == "data-missing: input 1 is connected to output 4"
        await settled(device, [*CHANGE[:2], "get-config cross-connects", *UNLOCK])


async def test_refused_edit_blames_the_named_circuit_and_is_discarded() -> None:
    device = ScriptedDevice(edit_config=[error("data-exists", "/o:pair[o:ingress='2']"), OK])
    async with opened(device) as session:
        result = await session.apply([], [Circuit(1, 1), Circuit(2, 2)])
        assert {circuit: one.code for circuit, one in result.refused.items()} == {Circuit(2, 2): "data-exists"}
        assert result.error is not None and result.error.ports == {Port("in", 2)}
        await settled(device, [*CHANGE, "discard-changes", *UNLOCK])
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()


async def test_refused_commit_is_reported_and_discarded() -> None:
    device = ScriptedDevice(commit=[error("operation-failed"), OK])
    async with opened(device) as session:
        result = await session.apply([], [Circuit(1, 1)])
        assert str(result.error) == "operation-failed: refused" and not result.refused
        await settled(device, [*CHANGE, "discard-changes", *UNLOCK])
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()


@pytest.mark.parametrize(
    ("features", "writes"),
    [
        (FULL, [[*CHANGE[:2], "get-config cross-connects"], CHANGE[2:], UNLOCK]),
        (["candidate:1.0"], [[*CHANGE[:2], "get-config cross-connects"], CHANGE[2:3], CHANGE[3:], UNLOCK]),
    ],
    ids=["rollback-on-error", "no rollback-on-error"],
)
async def test_requests_that_need_no_answer_first_are_one_write(
    features: Sequence[str], writes: list[list[str]]
) -> None:
    device = ScriptedDevice(*features, get_config_cross_connects=data(cross_connects((1, 17))))
    found: list[list[str]] = []
    receive = device.receive

    def note(written: bytes) -> None:
        before = len(device.log)
        receive(written)
        found.append(device.log[before:])

    async with opened(device) as session:
        device.receive = note  # type: ignore[method-assign]
        assert await session.apply([Circuit(1, 1)], []) == BatchResult()
        await eventually_async(lambda: len(found) == len(writes), "all writes")
        assert found == writes


@pytest.mark.parametrize(
    ("session_id", "holder"),
    [
        (17, "is locked by session 17"),
        (0, "by a client of another protocol"),
        (None, "another client .lock-denied: ref"),
    ],
)
async def test_lock_of_another_session_makes_the_switch_busy(session_id: int | None, holder: str) -> None:
    device = ScriptedDevice(lock_candidate=[error("lock-denied", session_id=session_id), OK])
    async with opened(device) as session:
        with pytest.raises(DeviceBusyError, match=rf"the optical switch ocs1 .*{holder}"):
            await session.apply([], [Circuit(1, 1)])
        await settled(device, [*CHANGE[:2], "unlock running"])
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()


async def test_denied_lock_makes_the_switch_busy_despite_a_moved_circuit() -> None:
    moved = data(cross_connects((1, 20)))
    device = ScriptedDevice(lock_running=[error("in-use"), OK], get_config_cross_connects=moved)
    async with opened(device) as session:
        with pytest.raises(DeviceBusyError, match=r"another client \(in-use: ref"):
            await session.apply([Circuit(1, 1)], [])
        await settled(device, [*CHANGE[:2], "get-config cross-connects", "unlock candidate"])
        result = await session.apply([Circuit(1, 1)], [])
        assert set(result.refused) == {Circuit(1, 1)}


async def test_device_without_locks_is_used_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    device = ScriptedDevice("writable-running:1.0", lock=error("operation-not-supported"))
    async with opened(device) as session:
        for _ in range(2):
            assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
        assert device.log == ["lock running", "edit-config running", "edit-config running"]
        assert caplog.text.count("ocs1 has no locks") == 1


@pytest.mark.parametrize(
    ("deletes", "adds", "message"),
    [
        ([], [Circuit(0, 1)], "no circuit 0 to 1: it has inputs 1 to 16"),
        ([Circuit(1, 17)], [], "no circuit 1 to 17"),
        ([], [Circuit(1, 1), Circuit(1, 2)], "one input to two outputs"),
    ],
)
async def test_impossible_circuits_are_not_sent(deletes: list[Circuit], adds: list[Circuit], message: str) -> None:
    device = ScriptedDevice()
    async with opened(device) as session:
        with pytest.raises(SwitchUsageError, match=message):
            await session.apply(deletes, adds)
        assert device.log == []


async def test_attenuators_are_set_in_one_change() -> None:
    device = ScriptedDevice()
    async with opened(device) as session:
        await session.set_attenuation({1: -3.5, 2: None})
        await settled(device, CHANGE + UNLOCK)
        [edit] = [one for one in device.requests if one.tag.endswith("edit-config")]
        assert [[leaf.text for leaf in port] for port in edit[-1][0]] == [
            ["17", "VOA_MODE_ABSOLUTE", "-3.50"],
            ["18", "VOA_MODE_NONE"],
        ]
        await session.set_attenuation({})
        for levels in ({17: 0.0}, {1: float("nan")}):
            with pytest.raises(SwitchUsageError):
                await session.set_attenuation(levels)
        assert len(device.log) == len(CHANGE + UNLOCK)


async def test_refused_attenuation_names_its_port() -> None:
    device = ScriptedDevice(edit_config=error("invalid-value", "/voa/port[port-id='18']"))
    async with opened(device) as session:
        with pytest.raises(RefusedError) as caught:
            await session.set_attenuation({2: 90.0})
        assert caught.value.ports == {Port("out", 2)}


# ------------------------------------------------------------------------------------------------ faults of changes


@pytest.mark.parametrize("cleanup", ["discard_changes", "unlock_candidate", "unlock_running"])
async def test_refused_cleanup_ends_the_session(cleanup: str) -> None:
    device = ScriptedDevice(edit_config=error("data-exists"), **{cleanup: error("operation-failed")})
    async with opened(device) as session:
        await session.apply([], [Circuit(1, 1)])
        assert await session.wait_closed() == "the switch refused to end a change: operation-failed: refused"
        with pytest.raises(UnreachableError, match="refused to end a change"):
            await session.read_powers()


async def test_change_without_an_answer_ends_the_session() -> None:
    device = ScriptedDevice(commit=None)
    session = session_to(device, SwitchTarget("ocs1", "ocs1.example.org", 830, 16, 16, 0.05))
    await session.open()
    with pytest.raises(UnreachableError, match=r"does not answer commit within 0\.05 s"):
        await session.apply([], [Circuit(1, 1)])
    assert "does not answer commit" in await session.wait_closed()


async def test_unreadable_circuits_end_the_session_and_nothing_is_edited() -> None:
    device = ScriptedDevice(get_config_cross_connects=data(cross_connects((1, 2))))
    async with opened(device) as session:
        with pytest.raises(ProtocolError, match="correct first_output"):
            await session.apply([Circuit(1, 1)], [])
        assert device.log[-1] == "get-config cross-connects"
        assert "first_output" in await session.wait_closed()


async def test_cancelled_change_is_carried_out_before_the_next() -> None:
    device = ScriptedDevice(commit=[None, OK])
    async with opened(device) as session:
        change = asyncio.create_task(session.apply([], [Circuit(1, 1)]))
        await eventually_async(lambda: "commit" in device.log, "the commit")
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change
        following = asyncio.create_task(session.apply([], [Circuit(2, 2)]))
        await asyncio.sleep(0)  # it would send its request now
        assert device.log[-1] == "commit"
        # Requests until now: attenuators, two locks, edit, commit.
        device.reply("5", OK)
        assert await following == BatchResult()
        await settled(device, [*CHANGE, *UNLOCK] * 2)


async def test_close_after_a_change_follows_its_unlocks() -> None:
    device = ScriptedDevice(unlock=None)
    async with opened(device) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
        await session.close()
        assert device.log == [*CHANGE, *UNLOCK, "close-session"]


@pytest.mark.parametrize(
    ("features", "unanswered", "sent"),
    [
        (FULL, "lock_running", CHANGE[:2]),
        (FULL, "lock_candidate", CHANGE[:2]),
        (FULL, "edit_config", CHANGE),
        (FULL, "commit", CHANGE),
        (["candidate:1.0"], "edit_config", CHANGE[:3]),
        (["candidate:1.0"], "commit", CHANGE),
    ],
)
async def test_nothing_is_sent_after_close_during_a_cancelled_change(
    features: Sequence[str], unanswered: str, sent: list[str]
) -> None:
    device = ScriptedDevice(*features, **{unanswered: None})
    async with opened(device) as session:
        change = asyncio.create_task(session.apply([], [Circuit(1, 1)]))
        await eventually_async(lambda: device.log == sent, "the request without an answer")
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change
        await session.close()
        assert device.log == [*sent, "close-session"]
        assert await session.wait_closed() == "closed by us"


async def test_close_during_a_change_ends_it() -> None:
    device = ScriptedDevice(commit=None)
    async with opened(device) as session:
        change = asyncio.create_task(session.apply([], [Circuit(1, 1)]))
        await eventually_async(lambda: "commit" in device.log, "the commit")
        await session.close()
        with pytest.raises(UnreachableError, match="closed by us"):
            await change
