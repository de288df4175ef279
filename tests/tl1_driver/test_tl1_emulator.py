"""The emulated switch seen from the wire, and its timing with a virtual clock."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from optical_switch.emulator.timing import Clock, DurationEstimate
from optical_switch.model import Circuit
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.emulator.requests import COMMAND_LIMIT, RequestReader

DATE = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)


class Terminal:
    """A person with a raw TCP connection: types a command, reads up to the prompt after the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def type(self, text: str) -> str:
        self.writer.write(text.encode())
        return (await self.reader.readuntil(b";\r\n<")).decode()

    async def answer(self, text: str) -> str:
        """Type a command, and return the answer without the echo and empty lines."""
        lines = (await self.type(text)).splitlines()[1:]
        return "\n".join(line for line in lines if line)


async def at_once(_removed, _added) -> None:
    pass


@contextlib.asynccontextmanager
async def terminal(switch: EmulatedSwitch) -> AsyncIterator[Terminal]:
    async with connected(switch) as (reader, writer):
        assert await reader.readexactly(1) == b"<"
        yield Terminal(reader, writer)


@contextlib.asynccontextmanager
async def connected(switch: EmulatedSwitch) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    sock = socket.create_server(("127.0.0.1", 0))
    server = await switch.serve(sock)
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    try:
        async with asyncio.timeout(5):
            yield reader, writer
    finally:
        writer.close()
        switch.cut()
        server.close()
        await server.wait_closed()


def switch(**options) -> EmulatedSwitch:
    return EmulatedSwitch(
        4, 3, **{"apply": at_once, "connect_seconds": 0.0, "clock": Clock(date=lambda: DATE), **options}
    )


async def test_echo_answer_and_prompt_on_the_wire() -> None:
    async with terminal(switch(sid="sw1")) as user:
        assert await user.type("rtrv-hdr:::7;\r\n") == (
            "rtrv-hdr:::7;\r\n\r\n\n   sw1 26-11-20 10:00:00\r\nM  7 COMPLD\r\n;\r\n<"
        )


async def test_lists() -> None:
    async with terminal(switch(sid="sw1")) as user:
        await user.type("ent-crs-fiber::10001,20002:1;")
        rows = await user.answer("RTRV-CRS-FIBER::all:2;")
        assert rows.count("GGN:IPORTID=") == 4 + 3 - 1
        assert "IPORTID=10001,IPORTNAME=,OPORTID=20002" in rows
        assert "IPORTID=10002,IPORTNAME=,OPORTID=0,OPORTNAME=,CONNID=0,CONNSTATE=single,CONNCAUSE=none" in rows
        assert "CONNSTATE=fault,CONNCAUSE=initial_connection_timer_expired,INPWR=-48.500" in rows
        assert (await user.answer("rtrv-crs-fiber::20002:3;")).count("GGN:") == 1
        assert (await user.answer("rtrv-crs-fiber::10001&20002&10003&&10004:3;")).count("GGN:") == 3
        assert (await user.answer("rtrv-cfg-fiber::all:4;")).count("PORTHEALTH=good") == 7
        assert '"GGN:PORTID=20003,PORTPOWER=-48.500"' in await user.answer("rtrv-port-power::all:5;")
        assert "LicensedPortMatrix=4x3" in await user.answer("rtrv-system-info:::6;")
        rows = await user.answer("RTRV-CFG-FIBER::ALL:7;")
        assert [f"PORTID={name}" in rows for name in (10001, 10004, 20001, 20003)] == [True] * 4
        assert "IIAC" in await user.answer("rtrv-cfg-fiber:::8;")
        assert "M  0 COMPLD" in await user.answer("RTRV-HDR;"), "without a CTAG"


@pytest.mark.parametrize("aid", ["10001", "20002", "10001,20002", "10001&10003,20002&20001", "10001&20001", "all"])
async def test_forms_of_delete(aid: str) -> None:
    device = switch()
    async with terminal(device) as user:
        await user.type("ent-crs-fiber::10001&10003,20002&20001:1:::opmode=sync;")
        assert device.circuits == (Circuit(1, 2), Circuit(3, 1))
        assert "COMPLD" in await user.answer(f"dlt-crs-fiber::{aid}:2;")
        both = "&" in aid or aid == "all"
        assert device.circuits == (() if both else (Circuit(3, 1),))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("ent-crs-fiber::10001,20002:9;", "SNVS"),
        ("ent-crs-fiber::10002,20002:9;", "SNVS"),
        ("ent-crs-fiber::10002&10002,20001&20003:9;", "SNVS"),
        ("ent-crs-fiber::10005,20001:9;", "IIAC"),
        ("ent-crs-fiber::10002,20004:9;", "IIAC"),
        ("ent-crs-fiber::20001,10002:9;", "IIAC"),
        ("ent-crs-fiber::10002:9;", "IIAC"),
        ("ent-crs-fiber::10002&10003,20001:9;", "IIAC"),
        ("ent-crs-fiber:::9;", "IIAC"),
        ("ent-crs-fiber::10002,20001:9:::opmode=later;", "IPNV"),
        ("dlt-crs-fiber::10002:9;", "SDNC"),
        ("dlt-crs-fiber::10001,20001:9;", "SDNC"),
        ("dlt-crs-fiber::10001&10001,20002&20002:9;", "SDNC"),
        ("rtrv-crs-fiber::10001&&20002:9;", "IIAC"),
        ("rtrv-crs-fiber::north:9;", "IIAC"),
        ("make-coffee:::9;", "IICM"),
    ],
)
async def test_denials_change_nothing(command: str, code: str) -> None:
    device = switch()
    async with terminal(device) as user:
        await user.type("ent-crs-fiber::10001,20002:1;")
        answer = await user.answer(command)
        assert "M  9 DENY" in answer
        assert f"   {code}\n   /* " in answer
        assert device.circuits == (Circuit(1, 2),)


async def test_session_time_out_ends_the_login() -> None:
    virtual = VirtualTime()
    async with terminal(switch(user="admin", password="x", session_seconds=60.0, clock=virtual.clock)) as user:
        await user.type("act-user::admin:1::x;")
        virtual.time += 59
        assert "COMPLD" in await user.answer("rtrv-hdr:::2;")
        virtual.time += 61
        assert "PLNA" in await user.answer("rtrv-hdr:::3;")


async def test_slow_mirror_and_disconnect_take_their_own_time() -> None:
    virtual = VirtualTime()
    device = switch(clock=virtual.clock, connect_seconds=0.01, disconnect_seconds=0.2)
    device.faults.slow_inputs[2] = 3.0
    async with terminal(device) as user:
        for name, expected in ((10001, 0.01), (10002, 3.01)):
            asked = virtual.time
            await user.type(f"ent-crs-fiber::{name},{name + 10000}:1;")
            assert virtual.time - asked == pytest.approx(expected, abs=0.001)
        asked = virtual.time
        await user.type("dlt-crs-fiber::all:2;")
        assert virtual.time - asked == pytest.approx(0.2, abs=0.001)


async def test_async_mode_answers_first_and_works_after() -> None:
    device = switch(connect_seconds=0.25)
    async with terminal(device) as user:
        assert "COMPLD" in await user.answer("ent-crs-fiber::10001,20001:1:::opmode=async;")
        assert device.circuits == ()
        await user.type("dlt-crs-fiber::all:2;")
        assert device.circuits == ()
        await user.type("ent-crs-fiber::10001,20001:3:::opmode=sync;")
        assert device.circuits == (Circuit(1, 1),)


async def test_overlong_command_is_denied_and_the_next_one_served() -> None:
    async with terminal(switch()) as user:
        assert "IICM" in await user.type("rtrv-crs-fiber::" + "1" * (3 * COMMAND_LIMIT) + ":1;")
        assert "M  2 COMPLD" in await user.answer("rtrv-hdr:::2;")


def test_a_command_has_no_comments() -> None:
    assert [request.aid for request in RequestReader().feed(b"ed-x::/*:1;ed-x::a:2;")] == ["/*", "a"]


def test_requests_do_not_depend_on_chunking() -> None:
    data = b'ACT-USER::admin:1::"p;w";\r\n\r\nENT-crs-fiber::10001,\r\n20001:x:::OPMODE=Async;rtrv-hdr;'
    whole = list(RequestReader().feed(data))
    reader = RequestReader()
    assert [request for at in range(len(data)) for request in reader.feed(data[at : at + 1])] == whole
    assert [(r.verb, r.aid, r.ctag) for r in whole] == [
        ("ACT-USER", "admin", "1"),
        ("ENT-CRS-FIBER", "10001,20001", "x"),
        ("RTRV-HDR", "", "0"),
    ]
    assert whole[1].settings == {"OPMODE": "Async"}


class VirtualTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.time = 100.0

    async def sleep(self, seconds: float) -> None:
        self.time += max(seconds, 0.00001)
        await asyncio.sleep(0)  # others may run

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep, date=lambda: DATE)


@pytest.mark.parametrize(("apply_seconds", "expected"), [(0.0, 0.014172), (0.004, 0.014172), (0.03, 0.03)])
async def test_connect_is_answered_when_the_switching_delay_is_over(apply_seconds: float, expected: float) -> None:
    virtual = VirtualTime()
    begun: list[float] = []

    async def apply(_removed, _added) -> None:
        begun.append(virtual.time)
        await virtual.sleep(apply_seconds)

    device = switch(apply=apply, clock=virtual.clock, connect_seconds=0.014172)
    async with terminal(device) as user:
        for count in range(20):
            asked = virtual.time
            await user.type("ent-crs-fiber::10001,20001:1;")
            elapsed = virtual.time - asked
            assert elapsed >= 0.014172
            if count >= 10:
                # By now the switch knows how long setting the paths takes.
                assert elapsed == pytest.approx(expected, abs=0.0005)
                dark = begun[-1] - asked
                assert dark == pytest.approx(max(0.0, 0.014172 - apply_seconds - 0.0012), abs=0.0008)
            await user.type("dlt-crs-fiber::all:2;")


def test_delay_estimate_follows_measured_times() -> None:
    estimate = DurationEstimate(0.003)
    for _ in range(50):
        estimate.add(0.010)
    assert estimate.seconds == pytest.approx(0.010, rel=0.01)
    steady = estimate.seconds
    estimate.add(0.020)
    assert estimate.seconds > steady
