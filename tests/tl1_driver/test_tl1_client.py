"""The client against the emulated switch, and against a scripted one, over loopback TCP.

The behavior of every dialect is in test_tl1_contract.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import replace

import pytest

from optical_switch.model import Circuit, Port
from tests.support.controller import tl1
from tests.support.controller.tl1 import Lab, scripted
from tl1_driver.client import BUFFER_SIZE, SwitchClient
from tl1_driver.dialects import Glimmerglass
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    MalformedResponseError,
    OutcomeUnknownError,
    SessionLostError,
    SessionNotOpenError,
    SwitchTimeoutError,
    SwitchUnreachableError,
    UnconfirmedCommandError,
)
from tl1_driver.protocol.session import ExchangeDeadlines

pytestmark = pytest.mark.virtual_time
GLIMMERGLASS = replace(Glimmerglass(), deadlines=ExchangeDeadlines(acknowledged=0.3))


def emulated(**options) -> contextlib.AbstractAsyncContextManager[Lab]:
    return tl1.emulated(GLIMMERGLASS, **options)


async def test_connect_list_disconnect() -> None:
    async with emulated() as lab:
        client = lab.client()
        await client.open()
        await client.connect([Circuit(1, 2), Circuit(3, 4)])
        assert lab.paths.lit == {Circuit(1, 2), Circuit(3, 4)}
        assert lab.paths.calls == 1
        assert {state.circuit for state in await client.circuits()} == lab.paths.lit
        assert {state.state for state in await client.circuits()} == {"fault"}
        assert all(state.waits_for_light for state in await client.circuits())
        await client.disconnect([Circuit(1, 2)])
        assert lab.paths.lit == {Circuit(3, 4)}
        assert [state.circuit for state in await client.circuits()] == [Circuit(3, 4)]


async def test_nothing_to_do_sends_nothing() -> None:
    async with emulated() as lab:
        sent: list[bytes] = []
        client = lab.client(transcript=lambda direction, data: sent.append(data) if direction == "sent" else None)
        await client.open()
        await client.connect([])
        await client.disconnect([])
        assert sent == []


async def test_power_reaches_the_list() -> None:
    def power(circuits):
        lit = {Port("in", 1): -2.5}
        return lit | {Port("out", c.output): -4.0 for c in circuits if c.input == 1}

    async with emulated(power=power) as lab:
        client = lab.client()
        await client.open()
        await client.connect([Circuit(1, 2), Circuit(3, 4)])
        first, second = await client.circuits()
        assert (first.state, first.input_power, first.output_power) == ("steady", -2.5, -4.0)
        assert (second.state, second.input_power) == ("fault", -48.5)


async def test_switch_requires_correct_login() -> None:
    async with emulated(user="admin", password="pass;word") as lab:
        with pytest.raises(CommandDeniedError) as wrong:
            await lab.client(user="admin", password="guess").open()
        assert wrong.value.code == "PIUI"
        unauthenticated = lab.client()
        await unauthenticated.open()
        with pytest.raises(CommandDeniedError) as refused:
            await unauthenticated.circuits()
        assert refused.value.code == "PLNA"
        client = lab.client(user="admin", password="pass;word")
        await client.open()
        assert await client.circuits() == []


async def test_password_is_in_no_transcript_though_the_switch_echoes_it() -> None:
    lines: list[tuple[str, bytes]] = []
    async with emulated(user="admin", password="open sesame") as lab:
        client = lab.client(user="admin", password="open sesame", transcript=lambda *line: lines.append(line))
        await client.open()
        await client.circuits()
        await client.close()
    sent = b"".join(data for direction, data in lines if direction == "sent")
    received = b"".join(data for direction, data in lines if direction == "received")
    assert b"ACT-USER::admin:1::********;" in sent
    assert b"ACT-USER::admin:1::********;" in received
    assert b"sesame" not in sent + received
    assert b"rtrv-crs-fiber" in sent
    assert b"CANC-USER::admin" in sent


async def test_absent_switch_raises_unreachable_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    with pytest.raises(SwitchUnreachableError, match=f"127.0.0.1:{port} is not reachable"):
        await SwitchClient("127.0.0.1", port, GLIMMERGLASS).open()


async def test_switch_that_never_answers_the_login() -> None:
    async def swallow(reader, writer) -> None:
        await reader.read()

    async with scripted(swallow) as port:
        client = SwitchClient("127.0.0.1", port, GLIMMERGLASS, user="admin", password="x", timeout=0.1)
        with pytest.raises(SwitchUnreachableError, match="does not complete the login"):
            await client.open()


async def test_client_that_was_not_opened() -> None:
    client = SwitchClient("127.0.0.1", 1, GLIMMERGLASS)
    with pytest.raises(SessionNotOpenError):
        await client.connect([Circuit(1, 1)])
    with pytest.raises(SessionNotOpenError):
        await client.wait_closed()
    await client.close()


async def test_lost_session_ends_waits_and_can_be_reopened() -> None:
    async with emulated() as lab:
        client = lab.client()
        await client.open()
        lab.switch.faults.silent = True
        change = asyncio.create_task(client.connect([Circuit(1, 1)]))
        await asyncio.sleep(0.02)
        lab.switch.cut()
        with pytest.raises(SessionLostError):
            await change
        assert await client.wait_closed()
        with pytest.raises(SessionLostError):
            await client.connect([Circuit(1, 1)])
        lab.switch.faults.silent = False
        await client.open()
        await client.connect([Circuit(1, 1)])


async def test_close_ends_wait_closed_with_reason() -> None:
    async with emulated() as lab:
        client = lab.client()
        await client.open()
        closed = asyncio.create_task(client.wait_closed())
        await client.close()
        assert await closed == "closed by us"


async def test_silence_is_a_timeout() -> None:
    async with emulated() as lab:
        client = lab.client(timeout=0.05)
        await client.open()
        lab.switch.faults.silent = True
        with pytest.raises(SwitchTimeoutError, match="ent-crs-fiber"):
            await client.connect([Circuit(1, 1)])


async def test_silence_after_an_answered_command_is_a_timeout_of_its_own() -> None:
    async with emulated() as lab:
        client = await lab.opened(timeout=0.5)
        loop = asyncio.get_running_loop()
        await client.circuits()
        await asyncio.sleep(0.3)
        lab.switch.faults.silent = True
        begun = loop.time()
        with pytest.raises(SwitchTimeoutError):
            await client.circuits()
        assert loop.time() - begun == pytest.approx(0.5, abs=0.05)


async def test_acknowledgment_then_silence_is_a_timeout_after_the_extension() -> None:
    async with emulated() as lab:
        client = lab.client(timeout=0.2)
        await client.open()
        lab.switch.faults.acknowledge_only = True
        began = asyncio.get_running_loop().time()
        with pytest.raises(SwitchTimeoutError):
            await client.connect([Circuit(1, 1)])
        assert asyncio.get_running_loop().time() - began >= 0.29
        lab.switch.faults.acknowledge_only = False
        assert [state.circuit for state in await client.circuits()] == [Circuit(1, 1)]


async def test_late_answer_does_not_disturb_the_next_command() -> None:
    async with emulated() as lab:
        client = lab.client(timeout=0.3)
        await client.open()
        lab.switch.faults.answer_delay = 0.45
        with pytest.raises(SwitchTimeoutError):
            await client.connect([Circuit(1, 1)])
        lab.switch.faults.answer_delay = 0.0
        with pytest.raises(OutcomeUnknownError, match="read the circuits first"):
            await client.connect([Circuit(1, 2)])
        assert [state.circuit for state in await client.circuits()] == [Circuit(1, 1)]
        with pytest.raises(CommandDeniedError):
            await client.connect([Circuit(1, 2)])
        await asyncio.sleep(0.2)
        assert [state.circuit for state in await client.circuits()] == [Circuit(1, 1)]


async def test_changes_that_wait_behind_one_without_outcome_are_not_sent() -> None:
    async with emulated() as lab:
        sent: list[bytes] = []
        client = lab.client(
            timeout=0.05, transcript=lambda direction, data: sent.append(data) if direction == "sent" else None
        )
        await client.open()
        lab.switch.faults.silent = True
        outcomes = await asyncio.gather(*(client.connect([Circuit(n, n)]) for n in (1, 2, 3)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [SwitchTimeoutError, OutcomeUnknownError, OutcomeUnknownError]
        assert sum(data.count(b"ent-crs-fiber") for data in sent) == 1


async def test_changes_are_serialized_and_reads_overtake_them() -> None:
    async with emulated(connect_seconds=0.25) as lab:
        sent: list[bytes] = []
        client = lab.client(transcript=lambda direction, data: sent.append(data) if direction == "sent" else None)
        await client.open()
        changes = [asyncio.create_task(client.connect([Circuit(n, n)])) for n in (1, 2)]
        await asyncio.sleep(0.01)
        assert await client.circuits() == []
        assert sum(data.count(b"ent-crs-fiber") for data in sent) == 1
        await asyncio.gather(*changes)
        assert lab.paths.lit == {Circuit(1, 1), Circuit(2, 2)}


async def test_keepalive_runs_when_idle_and_closes_session_of_silent_switch() -> None:
    async with emulated() as lab:
        sent: list[bytes] = []
        client = lab.client(
            replace(GLIMMERGLASS, keepalive=0.03),
            timeout=0.05,
            transcript=lambda direction, data: sent.append(data) if direction == "sent" else None,
        )
        await client.open()
        await asyncio.sleep(0.1)
        assert any(data.startswith(b"RTRV-HDR") for data in sent)
        lab.switch.faults.silent = True
        async with asyncio.timeout(1):
            assert "does not answer keepalives" in await client.wait_closed()


@pytest.mark.parametrize("row", ['"GGN:IPORTID=x,OPORTID=20001"', "garbage"])
async def test_malformed_list_raises_error(row: str) -> None:
    async def lie(reader, writer) -> None:
        await reader.readuntil(b";")
        writer.write(f"\r\n\n   sw 26-11-20 10:00:00\r\nM  1 COMPLD\r\n   {row}\r\n;".encode())
        await reader.read()

    async with scripted(lie) as port:
        client = SwitchClient("127.0.0.1", port, GLIMMERGLASS)
        await client.open()
        with pytest.raises(MalformedResponseError):
            await client.circuits()
        await client.close()


async def test_list_longer_than_the_receive_buffer() -> None:
    row = "   " + f'"GGN:IPORTID=10001,OPORTID=20001,CONNSTATE=steady,COMMENT={"x" * 100}"' + "\r\n"
    count = 2 * BUFFER_SIZE // len(row)

    async def report(reader, writer) -> None:
        await reader.readuntil(b";")
        writer.write(f"\r\n\n   sw 26-11-20 10:00:00\r\nM  1 COMPLD\r\n{row * count};".encode())
        await reader.read()

    async with scripted(report) as port:
        client = SwitchClient("127.0.0.1", port, GLIMMERGLASS)
        await client.open()
        assert len(await client.circuits()) == count
        await client.close()


async def test_acknowledgment_is_no_list() -> None:
    async def acknowledge(reader, writer) -> None:
        await reader.readuntil(b";")
        writer.write(b"OK 1\r\n<")
        await reader.read()

    async with scripted(acknowledge) as port:
        client = SwitchClient("127.0.0.1", port, GLIMMERGLASS, timeout=0.05)
        await client.open()
        with pytest.raises(UnconfirmedCommandError):
            await client.circuits()
        await client.close()


async def test_client_ignores_terminal_noise_before_first_answer() -> None:
    async def noisy(reader, writer) -> None:
        writer.write(b'\xff\xfb\x01\x1b[2J\x1b[1;1HWelcome to "east;\r\n\x00\x01\x02\r\nagent>')
        await reader.readuntil(b";")
        writer.write(b"\r\n\n   sw 26-11-20 10:00:00\r\nM  1 COMPLD\r\n;\r\nagent>")
        await reader.read()

    async with scripted(noisy) as port:
        client = SwitchClient("127.0.0.1", port, GLIMMERGLASS, user="admin", password="x")
        await client.open()
        await client.close()
