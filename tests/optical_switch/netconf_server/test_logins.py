"""Logins, channels and the end of sessions, over SSH."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from optical_switch.emulator.netconf_server import server
from optical_switch.emulator.netconf_server.server import serve_netconf
from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount
from tests.optical_switch.netconf_server.raw_client import (
    ACCOUNTS,
    LightPaths,
    cross_connects,
    edit,
    netconf_lab,
    removed,
)
from tests.support.waiting import eventually_async


async def test_wrong_password_and_unknown_user_are_refused() -> None:
    async with netconf_lab() as lab:
        for user, password in (("admin", "guess"), ("root", "guess"), ("root", "")):
            with pytest.raises(asyncssh.PermissionDenied):
                await lab.ssh(user, password=password)


async def test_public_key_logs_in() -> None:
    key, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    accounts = {"robot": UserAccount(public_key=key.export_public_key().decode())}
    settings = NetconfSwitchSettings(accounts=accounts)
    async with serve_netconf(2, 2, apply=LightPaths().apply, settings=settings) as switch:
        known = ([asyncssh.import_public_key(switch.host_key)], [], [])
        host, port = switch.address
        options = {"known_hosts": known, "username": "robot", "config": None, "agent_path": None}
        async with asyncssh.connect(host, port, client_keys=[key], **options):
            pass
        for keys in ([other], None):
            with pytest.raises(asyncssh.PermissionDenied):
                await asyncssh.connect(host, port, client_keys=keys, password="", **options)


async def test_host_key_is_kept_if_it_is_given() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    settings = NetconfSwitchSettings(accounts=ACCOUNTS, host_key=key.export_private_key().decode())
    async with serve_netconf(2, 2, apply=LightPaths().apply, settings=settings) as switch:
        assert asyncssh.import_public_key(switch.host_key).public_data == key.public_data
    async with netconf_lab() as first, netconf_lab() as second:
        assert first.switch.host_key != second.switch.host_key


async def test_only_the_subsystem_of_netconf_is_served() -> None:
    """RFC 6242 section 3."""
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        for options in ({"subsystem": "sftp"}, {"command": "id"}, {}):
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.open_session(encoding=None, **options)
        session = await lab.open(connection)
        await session.hello()
        await session.ok("<discard-changes/>")


async def test_one_connection_carries_several_sessions() -> None:
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        first, second = await lab.open(connection), await lab.open(connection)
        await first.hello()
        await second.hello()
        assert {first.number, second.number} == set(lab.switch.sessions)
        await first.ok("<lock><target><candidate/></target></lock>")
        assert (await second.error("<lock><target><candidate/></target></lock>")).tag == "lock-denied"


async def test_close_session_releases_everything_after_reply() -> None:
    """RFC 6241 section 7.8."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok("<lock><target><running/></target></lock>")
        await session.ok("<close-session/>")
        await other.ok("<lock><target><running/></target></lock>")
        assert await session.ended() == b""
        await eventually_async(lambda: lab.switch.sessions == (other.number,), "the session to end")


async def test_requests_behind_close_session_are_dropped() -> None:
    """RFC 6241 section 7.8."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        session.request("<close-session/>")
        session.request("<commit/>")
        assert (await session.ended()).count(b"<ok/>") == 1
        assert lab.circuits == {}


async def test_kill_session_ends_another_session() -> None:
    """RFC 6241 section 7.9."""
    async with netconf_lab() as lab:
        victim, other = await lab.session(), await lab.session()
        await victim.ok("<lock><target><candidate/></target></lock>")
        await victim.ok(edit(cross_connects((1, 9))))
        await other.ok(f"<kill-session><session-id>{victim.number}</session-id></kill-session>")
        await other.ok("<lock><target><candidate/></target></lock>")
        assert await other.pairs("candidate") == {}
        assert await victim.ended() == b""
        await eventually_async(lambda: lab.switch.sessions == (other.number,), "the session to end")


async def test_sessions_may_kill_each_other() -> None:
    async with netconf_lab() as lab:
        sessions = await lab.session(), await lab.session()
        await sessions[0].ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        sessions[0].request("<commit/>")
        await eventually_async(lambda: lab.paths.calls, "the commit to begin")
        for session, other in (sessions, sessions[::-1]):
            session.request(f"<kill-session><session-id>{other.number}</session-id></kill-session>")
        lab.paths.released.set()
        await eventually_async(lambda: len(lab.switch.sessions) <= 1, "a session to end")
        await (await lab.session()).ok("<lock><target><running/></target></lock>")


async def test_further_connections_are_cut_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 1)
    async with netconf_lab() as lab:
        session = await lab.session()
        with pytest.raises((OSError, asyncssh.Error)):
            await lab.ssh()
        await session.ok("<discard-changes/>")


@pytest.mark.parametrize(("number", "tag"), [("1", "invalid-value"), ("77", "invalid-value"), ("x", "invalid-value")])
async def test_kill_session_needs_number_of_another_session(number: str, tag: str) -> None:
    """RFC 6241 section 7.9."""
    async with netconf_lab() as lab:
        session = await lab.session()
        assert (await session.error(f"<kill-session><session-id>{number}</session-id></kill-session>")).tag == tag
        assert (await session.error("<kill-session/>")).info == {"bad-element": "session-id"}


async def test_users_of_group_view_only_read() -> None:
    async with netconf_lab() as lab:
        session, admin = await lab.session(user="view"), await lab.session()
        await admin.connect((1, 9))
        assert await session.pairs() == {1: 9}
        operations = [edit(removed(1)), "<commit/>", "<lock><target><running/></target></lock>", "<discard-changes/>"]
        operations.append(f"<kill-session><session-id>{admin.number}</session-id></kill-session>")
        for operation in operations:
            assert (await session.error(operation)).tag == "access-denied"
        assert lab.circuits == {1: 9}


async def test_users_of_group_user_cannot_change_the_system() -> None:
    config = (
        '<system-config xmlns="http://www.polatis.com/yang/optical-switch">'
        "<alarm-clear-hysteresis>2</alarm-clear-hysteresis></system-config>"
    )
    async with netconf_lab() as lab:
        session, admin = await lab.session(user="user"), await lab.session()
        await session.connect((1, 9))
        error = await session.error(edit(config))
        assert (error.tag, error.path) == ("access-denied", "/opsw:system-config")
        await admin.ok(edit(config))


async def test_lost_connection_finishes_operation_and_drops_others() -> None:
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        session = await lab.open(connection)
        await session.hello()
        await session.ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        session.request("<commit/>")
        session.request(edit(removed(1)))
        session.request("<commit/>")
        await eventually_async(lambda: lab.paths.calls, "the commit to begin")
        connection.abort()
        await connection.wait_closed()
        assert lab.switch.sessions == (1,)
        lab.paths.released.set()
        await eventually_async(lambda: not lab.switch.sessions, "the session to end")
        assert lab.circuits == {1: 9} and len(lab.paths.calls) == 1


async def test_server_that_stops_leaves_nothing_running() -> None:
    before = asyncio.all_tasks()
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        await session.ok("<commit><confirmed/></commit>")
        await session.ok(edit(removed(1)))
        lab.paths.released.clear()
        session.request("<commit/>")
        await eventually_async(lambda: len(lab.paths.calls) == 2, "the commit to begin")
        host, port = lab.switch.address
    assert asyncio.all_tasks() == before
    with pytest.raises(OSError):
        await asyncio.open_connection(host, port)
