"""Injected faults, reboots and failures of the hardware, by raw bytes over SSH."""

from __future__ import annotations

import asyncio
from xml.etree import ElementTree as ET

import asyncssh
import pytest

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.model import Circuit, Port
from tests.optical_switch.netconf_server.raw_client import (
    OPSW,
    PLTS,
    arrived,
    cross_connects,
    edit,
    netconf_lab,
    removed,
)
from tests.support.waiting import eventually_async

PAIR = "/opsw:cross-connects/opsw:pair[opsw:ingress='%d']"


@pytest.mark.parametrize("side", ["in", "out"])
async def test_refused_port_refuses_the_commit(side: str) -> None:
    async with netconf_lab() as lab:
        refused = lab.switch.faults.refused_inputs if side == "in" else lab.switch.faults.refused_outputs
        refused.add(2)
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9), (2, 10))))
        error = await session.error("<commit/>")
        assert (error.layer, error.tag, error.path) == ("application", "operation-failed", PAIR % 2)
        assert lab.circuits == {} and not lab.paths.calls
        # Section 8.3.4.1: a failed commit leaves the candidate for another try.
        refused.clear()
        await session.ok("<commit/>")
        assert lab.circuits == {1: 9, 2: 10}


@pytest.mark.parametrize("kind", ["stuck", "dead"])
async def test_circuit_that_fails_reverts_the_whole_commit(kind: str) -> None:
    """RFC 6241 section 8.3.4.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9), (4, 12))
        await session.ok('<create-subscription xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"/>')
        if kind == "stuck":
            lab.switch.faults.stuck_inputs.add(2)
        else:
            lab.switch.faults.dead_ports.add(Port("out", 2))
        await session.ok(edit(removed(1) + cross_connects((2, 10), (3, 9), (4, 11))))
        number = session.request("<commit/>")
        notice = await session.read()
        assert notice.find(f"{{{PLTS}}}system-error") is not None
        reply = await session.read()
        assert reply.get("message-id") == str(number)
        assert [one.text for one in reply.iterfind("{*}rpc-error/{*}error-path")] == [PAIR % 2]
        assert await session.pairs() == lab.circuits == {1: 9, 4: 12}
        assert lab.paths.lit == {Circuit(1, 1), Circuit(4, 4)}


async def test_only_circuit_that_fails_leaves_nothing_to_revert() -> None:
    async with netconf_lab() as lab:
        lab.switch.faults.stuck_inputs.add(2)
        session = await lab.session()
        await session.ok(edit(cross_connects((2, 10))))
        error = await session.error("<commit/>")
        assert error.message == "the mirrors of input 2 do not settle"
        assert lab.circuits == {} and not lab.paths.calls


async def test_circuits_that_cannot_be_set_again_are_missing(caplog: pytest.LogCaptureFixture) -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9))
        lab.switch.faults.stuck_inputs.add(2)
        lab.switch.faults.refused_inputs.add(1)
        await session.ok(edit(removed(1) + cross_connects((2, 9))))
        assert (await session.error("<commit/>")).tag == "operation-failed"
        assert await session.pairs() == lab.circuits == {}
        assert "cannot be set again" in caplog.text


async def test_every_failed_circuit_has_an_error() -> None:
    """RFC 6241 section 4.3."""
    async with netconf_lab() as lab:
        lab.switch.faults.stuck_inputs |= {2, 3}
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9), (2, 10), (3, 11))))
        errors = await session.errors("<commit/>")
        assert [(error.tag, error.path) for error in errors] == [
            ("operation-failed", PAIR % 2),
            ("operation-failed", PAIR % 3),
        ]
        assert lab.circuits == {}


async def test_partial_bulk_leaves_circuits_before_the_offending_one() -> None:
    """A device with this fault violates section 8.3.4.1."""
    async with netconf_lab() as lab:
        lab.switch.faults.partial_bulk = True
        lab.switch.faults.refused_inputs.add(2)
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9), (2, 10), (3, 11))))
        assert (await session.error("<commit/>")).tag == "operation-failed"
        assert await session.pairs() == lab.circuits == {1: 9}


async def test_light_paths_that_cannot_be_set_fail_the_commit(caplog: pytest.LogCaptureFixture) -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9))
        lab.paths.error = OSError("no such device")
        await session.ok(edit(removed(1)))
        assert (await session.error("<commit/>")).tag == "operation-failed"
        lab.paths.error = None
        assert lab.circuits == {1: 9} and "no such device" in caplog.text
        await session.ok("<commit/>")
        assert lab.circuits == {}


async def test_refuse_all_refuses_every_operation() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        lab.switch.faults.refuse_all = True
        for operation in ("<get/>", edit(cross_connects((1, 9))), "<commit/>", "<close-session/>"):
            assert (await session.error(operation)).tag == "operation-failed"
        lab.switch.faults.refuse_all = False
        assert await session.pairs("candidate") == {}


async def test_silent_device_drops_requests() -> None:
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        session, other = await lab.open(connection), await lab.session()
        await session.hello()
        await session.ok(edit(cross_connects((1, 9))))
        lab.switch.faults.silent = True
        session.request("<commit/>")
        await arrived(connection)
        lab.switch.faults.silent = False
        # The dropped request has no reply: the next reply is that of the next request.
        await session.ok("<discard-changes/>")
        assert await other.pairs() == {}


@pytest.mark.parametrize("fault", ["lose_answer", "cut_before_answer"])
async def test_change_without_answer_is_carried_out(fault: str) -> None:
    async with netconf_lab(add=[AnnouncedFeature.WRITABLE_RUNNING]) as lab:
        session = await lab.session()
        setattr(lab.switch.faults, fault, True)
        # An edit of the candidate moves no circuit.
        await session.ok(edit(cross_connects((1, 9))))
        session.request("<commit/>")
        await eventually_async(lambda: lab.circuits == {1: 9}, "the commit")
        if fault == "cut_before_answer":
            assert await session.ended() == b""
            session = await lab.session()
        assert await session.pairs() == {1: 9}
        session.request(edit(removed(1), "running"))
        await eventually_async(lambda: lab.circuits == {}, "the edit")


async def test_answer_is_delayed_after_the_work() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        lab.switch.faults.answer_delay = 7.0
        number = session.request("<commit/>")
        await eventually_async(lambda: lab.circuits and lab.time.sleepers == 1, "the work")
        lab.time.advance(7.0)
        assert (await session.read()).get("message-id") == str(number)


async def test_session_that_ends_during_delay_releases_its_locks() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok("<lock><target><running/></target></lock>")
        lab.switch.faults.answer_delay = 7.0
        session.request("<commit/>")
        await eventually_async(lambda: lab.time.sleepers == 1, "the delay")
        session.writer.channel.get_connection().abort()
        await eventually_async(lambda: not lab.switch.sessions, "the session to end")
        lab.switch.faults.answer_delay = 0.0
        await (await lab.session()).ok("<lock><target><running/></target></lock>")


async def test_cut_drops_all_connections_and_keeps_circuits() -> None:
    async with netconf_lab() as lab:
        sessions = await lab.session(), await lab.session()
        await sessions[0].connect((1, 9))
        lab.switch.cut()
        assert [await session.ended() for session in sessions] == [b"", b""]
        await eventually_async(lambda: not lab.switch.sessions, "the sessions to end")
        assert await (await lab.session()).pairs() == {1: 9}


async def test_further_session_is_refused_beyond_the_limit() -> None:
    async with netconf_lab() as lab:
        lab.switch.faults.max_sessions = 1
        session = await lab.session()
        with pytest.raises(asyncssh.ChannelOpenError, match="no further session"):
            await lab.open()
        await session.ok("<close-session/>")
        await eventually_async(lambda: not lab.switch.sessions, "the session to end")
        await lab.session()


async def test_slow_input_delays_the_reply() -> None:
    async with netconf_lab() as lab:
        lab.switch.faults.slow_inputs[1] = 0.75
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        number = session.request("<commit/>")
        await eventually_async(lambda: lab.time.sleepers == 1, "the mirrors to move")
        assert lab.circuits == {}
        lab.time.advance(0.75)
        assert (await session.read()).get("message-id") == str(number)
        assert lab.circuits == {1: 9}


async def test_late_list_lags_behind_and_commits_do_not() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9))
        lab.time.advance(20)
        lab.switch.faults.late_list = 10.0
        await session.connect((2, 10))
        assert await session.pairs() == {1: 9}
        await session.connect((3, 11))
        assert lab.circuits == {1: 9, 2: 10, 3: 11}
        lab.time.advance(11)
        assert await session.pairs() == {1: 9, 2: 10, 3: 11}


@pytest.mark.parametrize(("mode", "circuits"), [("MODE_PRESERVE", {1: 9}), ("MODE_VOLATILE", {})])
async def test_reboot_keeps_or_loses_configuration(mode: str, circuits: dict[int, int]) -> None:
    startup = f'<system-config xmlns="{OPSW}"><startup-mode xmlns="{PLTS}">{mode}</startup-mode></system-config>'
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(startup + cross_connects((1, 9))))
        await session.ok("<commit/>")
        await session.ok("<lock><target><running/></target></lock>")
        await session.ok(edit(cross_connects((2, 10))))
        await lab.switch.reboot()
        assert not lab.switch.sessions
        assert await session.ended() == b""
        assert lab.circuits == circuits and {one.input for one in lab.paths.lit} == set(circuits)
        again = await lab.session()
        assert await again.pairs("candidate") == circuits
        await again.ok("<lock><target><running/></target></lock>")
        data = await again.data("<get-config><source><running/></source></get-config>")
        assert f">{mode if circuits else 'MODE_PRESERVE'}<" in _text(data)


def _text(data: ET.Element) -> str:
    return ET.tostring(data, encoding="unicode")


async def test_reboot_waits_for_the_operation_in_progress() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        session.request("<commit/>")
        await eventually_async(lambda: lab.paths.calls, "the commit to begin")
        rebooting = asyncio.create_task(lab.switch.reboot())
        assert await session.ended() == b""
        with pytest.raises(asyncssh.ChannelOpenError):
            await lab.open()
        lab.paths.released.set()
        await rebooting
        assert lab.circuits == {1: 9}


async def test_failure_at_the_end_of_session_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9))
        await session.ok("<lock><target><running/></target></lock>")
        await session.ok(edit(removed(1)))
        await session.ok("<commit><confirmed/></commit>")
        lab.paths.error = OSError("no such device")
        session.writer.channel.get_connection().abort()
        await eventually_async(lambda: "cannot be ended properly" in caplog.text, "the log")
        lab.paths.error = None
        lab.switch.faults.max_sessions = 1
        other = await lab.session()
        await other.ok("<lock><target><running/></target></lock>")
        assert lab.switch.sessions == (other.number,)
