"""Locks of configurations, by raw bytes over SSH."""

from __future__ import annotations

import pytest

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from tests.optical_switch.netconf_server.raw_client import cross_connects, edit, netconf_lab
from tests.support.waiting import eventually_async


def lock(target: str, operation: str = "lock") -> str:
    return f"<{operation}><target><{target}/></target></{operation}>"


@pytest.mark.parametrize("target", ["running", "candidate"])
async def test_lock_is_held_by_one_session(target: str) -> None:
    """RFC 6241 section 7.5."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(lock(target))
        for one in (session, other):
            error = await one.error(lock(target))
            assert (error.layer, error.tag, error.info) == ("protocol", "lock-denied", {"session-id": "1"})
        await session.ok(lock(target, "unlock"))
        await other.ok(lock(target))


async def test_only_the_owner_unlocks() -> None:
    """RFC 6241 section 7.6."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        assert (await session.error(lock("running", "unlock"))).tag == "operation-failed"
        await session.ok(lock("running"))
        assert (await other.error(lock("running", "unlock"))).tag == "operation-failed"
        assert (await other.error(lock("running"))).tag == "lock-denied"


async def test_modified_candidate_cannot_be_locked() -> None:
    """RFC 6241 section 7.5."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        error = await other.error(lock("candidate"))
        assert (error.tag, error.info) == ("lock-denied", {"session-id": "0"})
        await session.ok("<discard-changes/>")
        await other.ok(lock("candidate"))


async def test_locked_candidate_is_changed_by_its_owner_only() -> None:
    """RFC 6241 sections 7.5 and 8.3.4.1."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(lock("candidate"))
        for operation in (edit(cross_connects((1, 9))), "<commit/>", "<discard-changes/>"):
            error = await other.error(operation)
            assert (error.layer, error.tag) == ("protocol", "in-use")
        await session.connect((1, 9))
        assert lab.circuits == {1: 9}
        assert await other.pairs("candidate") == {1: 9}


async def test_locked_running_is_changed_by_its_owner_only() -> None:
    """RFC 6241 section 8.3.4.1."""
    async with netconf_lab(add=[AnnouncedFeature.WRITABLE_RUNNING]) as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(lock("running"))
        await other.ok(edit(cross_connects((1, 9))))
        for operation in ("<commit/>", edit(cross_connects((2, 10)), "running")):
            assert (await other.error(operation)).tag == "in-use"
        await session.ok("<commit/>")
        assert lab.circuits == {1: 9}


async def test_unlocking_candidate_discards_its_changes() -> None:
    """RFC 6241 section 8.3.5.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(lock("candidate"))
        await session.ok(edit(cross_connects((1, 9))))
        await session.ok(lock("candidate", "unlock"))
        assert await session.pairs("candidate") == {}


async def test_end_of_session_releases_lock_and_discards_changes() -> None:
    """RFC 6241 sections 7.5 and 8.3.5.2."""
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        session, other = await lab.open(connection), await lab.session()
        await session.hello()
        await session.ok(lock("candidate"))
        await session.ok(lock("running"))
        await session.ok(edit(cross_connects((1, 9))))
        connection.abort()
        await eventually_async(lambda: lab.switch.sessions == (other.number,), "the session to end")
        await other.ok(lock("candidate"))
        await other.ok(lock("running"))
        assert await other.pairs("candidate") == {}


async def test_changes_without_lock_outlive_their_session() -> None:
    """RFC 6241 section 8.3.1: the candidate configuration is shared."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        await session.ok("<close-session/>")
        await eventually_async(lambda: lab.switch.sessions == (other.number,), "the session to end")
        assert await other.pairs("candidate") == {1: 9}


async def test_running_cannot_be_locked_during_confirmed_commit_of_another_session() -> None:
    """RFC 6241 section 7.5."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok("<commit><confirmed/></commit>")
        error = await other.error(lock("running"))
        assert (error.tag, error.info) == ("lock-denied", {"session-id": "1"})
        await session.ok(lock("running"))
        await session.ok("<commit/>")
        await session.ok(lock("running", "unlock"))
        await other.ok(lock("running"))
