"""Confirmed commits (RFC 6241 section 8.4), by raw bytes over SSH, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.model import Circuit
from tests.optical_switch.netconf_server.raw_client import (
    NetconfLab,
    RawSession,
    cross_connects,
    edit,
    netconf_lab,
    removed,
)
from tests.support.waiting import eventually_async

CONFIRMED = "<commit><confirmed/></commit>"


def commit(**parameters: str) -> str:
    """Return a commit; `timeout="5"` stands for the confirm-timeout."""
    names = {"timeout": "confirm-timeout", "persist_id": "persist-id"}
    inside = "".join(f"<{names.get(name, name)}>{text}</{names.get(name, name)}>" for name, text in parameters.items())
    return f"<commit>{inside}</commit>"


@pytest.fixture
async def lab() -> AsyncIterator[NetconfLab]:
    async with netconf_lab() as made:
        yield made


async def prepared(lab: NetconfLab) -> RawSession:
    """Return a session; the circuit from 1 to 9 is set, and one from 2 to 10 in its place is in the candidate."""
    session = await lab.session()
    await session.connect((1, 9))
    await session.ok(edit(removed(1) + cross_connects((2, 10))))
    return session


async def reverted(lab: NetconfLab) -> None:
    await eventually_async(lambda: lab.circuits == {1: 9}, "the revert")


async def test_unconfirmed_commit_reverts_after_600_seconds(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(CONFIRMED)
    assert lab.circuits == {2: 10}
    await eventually_async(lambda: lab.time.sleepers == 1, "the timer")
    lab.time.advance(599)
    assert await session.pairs() == {2: 10}
    lab.time.advance(1)
    await reverted(lab)
    assert await session.pairs("candidate") == {1: 9}


async def test_confirm_timeout_is_a_parameter(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(commit(confirmed="", timeout="5"))
    await eventually_async(lambda: lab.time.sleepers == 1, "the timer")
    lab.time.advance(5)
    await reverted(lab)


@pytest.mark.parametrize("text", ["0", "-1", "x", "4294967296"])
async def test_wrong_timeout_is_refused(lab: NetconfLab, text: str) -> None:
    session = await prepared(lab)
    assert (await session.error(commit(confirmed="", timeout=text))).tag == "invalid-value"
    assert lab.circuits == {1: 9}


async def test_second_commit_confirms(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(CONFIRMED)
    await eventually_async(lambda: lab.time.sleepers == 1, "the timer")
    await session.ok("<commit/>")
    assert lab.time.sleepers == 0
    await session.ok("<close-session/>")
    await eventually_async(lambda: not lab.switch.sessions, "the session to end")
    assert lab.circuits == {2: 10}


async def test_further_confirmed_commit_restarts_time_and_keeps_first_point(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(commit(confirmed="", timeout="10"))
    await eventually_async(lambda: lab.time.sleepers == 1, "the timer")
    lab.time.advance(9)
    await session.ok(edit(cross_connects((3, 11))))
    await session.ok(commit(confirmed="", timeout="10"))
    await eventually_async(lambda: lab.time.sleepers == 1, "the new timer")
    lab.time.advance(9)
    assert await session.pairs() == {2: 10, 3: 11}
    lab.time.advance(1)
    await reverted(lab)


@pytest.mark.parametrize("way_to_end", ["close", "kill", "cut"])
async def test_end_of_session_reverts(lab: NetconfLab, way_to_end: str) -> None:
    session, other = await prepared(lab), await lab.session()
    await session.ok(CONFIRMED)
    match way_to_end:
        case "close":
            await session.ok("<close-session/>")
        case "kill":
            await other.ok(f"<kill-session><session-id>{session.number}</session-id></kill-session>")
        case "cut":
            session.writer.channel.get_connection().abort()
    await reverted(lab)
    await eventually_async(lambda: lab.time.sleepers == 0, "the timer to stop")


@pytest.mark.parametrize("operation", ["close-session", "kill-session"])
async def test_reply_to_the_end_of_session_follows_the_revert(lab: NetconfLab, operation: str) -> None:
    """RFC 6241 sections 7.8 and 7.9: the locks of the session are released, too."""
    session, other = await prepared(lab), await lab.session()
    await session.ok("<lock><target><running/></target></lock>")
    await session.ok(CONFIRMED)
    lab.paths.released.clear()
    ender = session if operation == "close-session" else other
    inside = "" if ender is session else f"<session-id>{session.number}</session-id>"
    ender.request(f"<{operation}>{inside}</{operation}>")
    reply = asyncio.create_task(ender.read())
    await eventually_async(lambda: len(lab.paths.calls) == 3, "the revert to begin")
    observer = await lab.session()
    assert await observer.pairs() == {2: 10} and not reply.done()
    lab.paths.released.set()
    await reply
    assert lab.circuits == {1: 9}
    await observer.ok("<lock><target><running/></target></lock>")


async def test_persistent_commit_outlives_session_and_is_confirmed_by_another(lab: NetconfLab) -> None:
    session, other = await prepared(lab), await lab.session()
    await session.ok(commit(confirmed="", persist="token"))
    await session.ok("<close-session/>")
    await eventually_async(lambda: lab.switch.sessions == (other.number,), "the session to end")
    assert lab.circuits == {2: 10}
    for wrong in (commit(persist_id="guess"), "<cancel-commit><persist-id>guess</persist-id></cancel-commit>"):
        error = await other.error(wrong)
        assert (error.tag, error.info) == ("invalid-value", {"bad-element": "persist-id"})
    assert (await other.error("<commit/>")).tag == "in-use"
    await other.ok(commit(persist_id="token"))
    await eventually_async(lambda: lab.time.sleepers == 0, "the timer to stop")
    assert lab.circuits == {2: 10}


async def test_persistent_commit_is_cancelled_by_another_session(lab: NetconfLab) -> None:
    session, other = await prepared(lab), await lab.session()
    await session.ok(commit(confirmed="", persist="token"))
    await other.ok("<cancel-commit><persist-id>token</persist-id></cancel-commit>")
    assert lab.circuits == {1: 9}


async def test_persistent_commit_needs_its_token_in_any_session(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(commit(confirmed="", persist="token"))
    for operation in ("<commit/>", "<cancel-commit/>"):
        assert (await session.error(operation)).tag == "in-use"
    await session.ok(commit(persist_id="token"))
    assert lab.circuits == {2: 10}


async def test_locked_running_is_not_reverted_by_another_session(lab: NetconfLab) -> None:
    """Section 7.5."""
    session, other = await prepared(lab), await lab.session()
    await session.ok(commit(confirmed="", persist="token"))
    await session.ok("<lock><target><running/></target></lock>")
    assert (await other.error("<cancel-commit><persist-id>token</persist-id></cancel-commit>")).tag == "in-use"
    assert lab.circuits == {2: 10}


async def test_persistent_commit_reverts_in_time(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(commit(confirmed="", persist="token", timeout="30"))
    await session.ok("<close-session/>")
    await eventually_async(lambda: lab.time.sleepers == 1, "the timer")
    lab.time.advance(30)
    await reverted(lab)


async def test_other_sessions_cannot_commit_or_cancel(lab: NetconfLab) -> None:
    session, other = await prepared(lab), await lab.session()
    await session.ok(CONFIRMED)
    for operation in ("<commit/>", CONFIRMED, "<cancel-commit/>"):
        assert (await other.error(operation)).tag == "in-use"
    assert (await other.error(commit(persist_id="x"))).tag == "invalid-value"
    await session.ok("<commit/>")
    assert lab.circuits == {2: 10}


async def test_cancel_commit_reverts_at_once(lab: NetconfLab) -> None:
    """Section 8.4.4.1."""
    session = await prepared(lab)
    await session.ok(CONFIRMED)
    await session.ok("<cancel-commit/>")
    assert lab.circuits == {1: 9} and lab.time.sleepers == 0
    assert (await session.error("<cancel-commit/>")).tag == "operation-failed"


async def test_revert_restores_all_settings(lab: NetconfLab) -> None:
    session = await lab.session()
    label = '<port-config xmlns="http://www.polatis.com/yang/optical-switch"><port><port-id>1</port-id>%s</port></port-config>'
    await session.ok(edit(label % "<label>before</label>"))
    await session.ok("<commit/>")
    await session.ok(edit(label % "<label>after</label>"))
    await session.ok(CONFIRMED)
    await session.ok("<cancel-commit/>")
    assert b"<label>before</label>" in await read_text(session)


async def read_text(session: RawSession) -> bytes:
    session.request("<get-config><source><running/></source></get-config>")
    return await session.read_bytes()


async def test_failed_commit_leaves_confirmed_commit_pending(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(CONFIRMED)
    lab.switch.faults.refused_inputs.add(3)
    await session.ok(edit(cross_connects((3, 11))))
    assert (await session.error("<commit/>")).tag == "operation-failed"
    await session.ok("<cancel-commit/>")
    assert lab.circuits == {1: 9}


async def test_revert_that_fails_leaves_circuits(lab: NetconfLab, caplog: pytest.LogCaptureFixture) -> None:
    session = await prepared(lab)
    await session.ok(CONFIRMED)
    lab.switch.faults.refused_inputs.add(1)
    assert (await session.error("<cancel-commit/>")).tag == "operation-failed"
    assert lab.circuits == {2: 10} and not caplog.text
    await session.ok(CONFIRMED)
    await session.ok("<close-session/>")
    await eventually_async(lambda: not lab.switch.sessions, "the session to end")
    assert lab.circuits == {2: 10} and not caplog.text


async def test_revert_without_client_that_fails_is_logged(lab: NetconfLab, caplog: pytest.LogCaptureFixture) -> None:
    session = await prepared(lab)
    await session.ok(CONFIRMED)
    lab.switch.faults.refused_inputs.add(1)
    await session.ok("<close-session/>")
    await eventually_async(lambda: not lab.switch.sessions, "the session to end")
    assert lab.circuits == {2: 10} and "cannot be restored" in caplog.text


async def test_reboot_reverts(lab: NetconfLab) -> None:
    session = await prepared(lab)
    await session.ok(commit(confirmed="", persist="token"))
    await lab.switch.reboot()
    assert lab.circuits == {1: 9} and lab.paths.lit == {Circuit(1, 1)}


async def test_parameters_need_confirmed_and_feature(lab: NetconfLab) -> None:
    session = await lab.session()
    for parameters in ({"timeout": "5"}, {"persist": "token"}):
        assert (await session.error(commit(**parameters))).info == {"bad-element": "confirmed"}
    async with netconf_lab(without=[AnnouncedFeature.CONFIRMED_COMMIT]) as plain:
        session = await plain.session()
        assert (await session.error(CONFIRMED)).info == {"bad-element": "confirmed"}
        assert (await session.error("<cancel-commit/>")).tag == "operation-not-supported"
