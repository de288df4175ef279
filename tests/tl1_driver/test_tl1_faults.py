"""The faults of the emulated hardware as each TL1 dialect shows them, and the table of error codes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from optical_switch.emulator.crossbar import SwitchRefusal
from optical_switch.model import DARK_BELOW_DBM, Circuit, Port
from tests.support.controller import tl1
from tests.support.controller.tl1 import Lab
from tests.support.waiting import eventually_async
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS, Calient, Dialect
from tl1_driver.emulator.languages import LANGUAGES
from tl1_driver.emulator.replies import ERROR_CODES
from tl1_driver.protocol.errors import CommandDeniedError, SessionLostError, SessionsInUseError, Tl1Error

pytestmark = pytest.mark.virtual_time
ONE, TWO = Circuit(1, 2), Circuit(3, 4)
LANGUAGE = pytest.mark.parametrize("language", sorted(LANGUAGES))
LOGIN = {"user": "admin", "password": "secret"}


def spoken(language: str) -> Dialect:
    dialect = DIALECTS[language.removesuffix("-prompt")]
    return replace(dialect, poll_seconds=0.002) if isinstance(dialect, Calient) else dialect


def lit(circuits):
    """Return 0 dBm at all inputs, and -2 dBm at the outputs that they reach."""
    return {Port("in", n): 0.0 for n in range(1, 9)} | {Port("out", c.output): -2.0 for c in circuits}


@contextlib.asynccontextmanager
async def opened(language: str, **options: Any) -> AsyncIterator[tuple[Lab, SwitchClient]]:
    async with tl1.emulated(spoken(language), dialect=language, **options) as lab:
        yield lab, await lab.opened()


async def listed(client: SwitchClient) -> set[Circuit]:
    return {state.circuit for state in await client.circuits() if state.made}


def test_every_reason_has_an_error_code_of_its_own() -> None:
    assert set(ERROR_CODES) == set(SwitchRefusal)
    assert len(set(ERROR_CODES.values())) == len(SwitchRefusal)


@LANGUAGE
@pytest.mark.parametrize("dead", [Port("in", 1), Port("out", 2), None])
async def test_stuck_mirror_or_dead_port_denies_connect_after_its_time(language: str, dead: Port | None) -> None:
    async with opened(language, connect_seconds=0.05) as (lab, client):
        if dead is None:
            lab.switch.faults.stuck_inputs.add(ONE.input)
        else:
            lab.switch.faults.dead_ports.add(dead)
        began = asyncio.get_running_loop().time()
        with pytest.raises(CommandDeniedError) as caught:
            await client.connect([ONE])
        assert caught.value.code == "SROF"
        assert asyncio.get_running_loop().time() - began >= 0.05
        assert await client.circuits() == [] and lab.paths.lit == set() == set(lab.switch.circuits)
        with pytest.raises(CommandDeniedError):
            await client.disconnect([ONE])
        lab.switch.faults.stuck_inputs.clear()
        lab.switch.faults.dead_ports.clear()
        await client.connect([ONE])
        assert lab.paths.lit == {ONE} == await listed(client)


@LANGUAGE
async def test_bulk_with_stuck_mirror_sets_the_others(language: str) -> None:
    async with opened(language) as (lab, client):
        lab.switch.faults.stuck_inputs.add(TWO.input)
        with pytest.raises(CommandDeniedError):
            await client.connect([ONE, TWO])
        assert await listed(client) == {ONE} == lab.paths.lit == set(lab.switch.circuits)
        for circuit in await listed(client):
            await client.disconnect([circuit])
        assert lab.paths.lit == set()


async def test_stuck_mirror_in_bulk_is_answered_with_partial_code() -> None:
    answers = {"DENY": "M  2 DENY", "PRTL": "M  2 PRTL", "COMPLD": "M  2 COMPLD"}
    for code, expected in answers.items():
        async with tl1.emulated(spoken("glimmerglass")) as lab:
            lab.switch.faults.stuck_inputs, lab.switch.faults.partial_code = {3}, code
            reader, writer = await asyncio.open_connection("127.0.0.1", lab.port)
            writer.write(b"ent-crs-fiber::10001&10003,20002&20004:2;")
            text = await reader.readuntil(b";\r\n<")
            assert expected in text.decode()
            assert lab.paths.lit == {ONE}
            writer.close()


@LANGUAGE
async def test_failed_port_darkens_its_circuit(language: str) -> None:
    async with opened(language, power=lit) as (lab, client):
        await client.connect([ONE, TWO])
        lab.switch.faults.dead_ports.add(Port("out", ONE.output))
        powers = await client.powers()
        assert powers[Port("out", 2)] < DARK_BELOW_DBM
        assert powers[Port("out", 4)] == pytest.approx(-2.0)
        states = {state.circuit: state for state in await client.circuits()}
        if "polatis" not in language:
            # The list of a Polatis has no states.
            assert states[ONE].state == "fault" and not states[ONE].waits_for_light
        assert states[TWO].state == "steady"
        await client.disconnect([ONE])
        assert lab.paths.lit == {TWO}


@LANGUAGE
async def test_extra_loss_and_meter_error_change_powers(language: str) -> None:
    async with opened(language, power=lit) as (lab, client):
        await client.connect([ONE, TWO])
        lab.switch.faults.extra_loss_db[ONE] = 3.0
        lab.switch.faults.power_error_db[Port("in", 3)] = 1.5
        powers = await client.powers()
        assert powers[Port("out", 2)] == pytest.approx(-5.0)
        assert powers[Port("in", 3)] == pytest.approx(1.5)
        assert powers[Port("out", 4)] == pytest.approx(-2.0)


@LANGUAGE
async def test_list_lags_behind(language: str) -> None:
    async with opened(language) as (lab, client):
        lab.switch.faults.late_list = 1.0
        await client.connect([ONE])
        assert lab.paths.lit == {ONE}
        assert await listed(client) == set()
        await asyncio.sleep(1.0)
        assert await listed(client) == {ONE}
        # The names of ports in a delete are resolved on the crossbar, not on its list.
        await client.disconnect([ONE])
        assert lab.paths.lit == set()


@LANGUAGE
async def test_full_session_table_refuses_connections(language: str) -> None:
    async with opened(language) as (lab, client):
        lab.switch.faults.max_sessions = 1
        # The switch accepts and then closes the connection: a dialect that first sends nothing can still open it.
        refused = lab.client()
        with pytest.raises(Tl1Error):
            await refused.open()
            await refused.circuits()
        await client.connect([ONE])
        await client.close()
        await eventually_async(lambda: not lab.switch._connections, "the session to end")
        other = await lab.opened()
        assert await listed(other) == {ONE}


@LANGUAGE
async def test_full_session_table_denies_logins(language: str) -> None:
    async with tl1.emulated(spoken(language), dialect=language, **LOGIN) as lab:
        lab.switch.faults.max_sessions = 1
        client = await lab.opened(**LOGIN)
        with pytest.raises(SessionsInUseError, match=r"SARB: .*: end a session of another client"):
            await lab.opened(**LOGIN)
        await client.connect([ONE])
        await client.close()
        await eventually_async(lambda: not lab.switch._connections, "the session to end")
        assert await listed(await lab.opened(**LOGIN)) == {ONE}


@LANGUAGE
async def test_reboot_cuts_sessions_and_loses_circuits(language: str) -> None:
    async with opened(language) as (lab, client):
        await client.connect([ONE, TWO])
        await lab.switch.connect_by_hand(Circuit(5, 5), locked=True)
        await lab.switch.reboot()
        await client.wait_closed()
        assert lab.paths.lit == set() == set(lab.switch.circuits)
        await client.open()
        assert await client.circuits() == []
        await client.connect([ONE, Circuit(5, 5)])
        assert lab.paths.lit == {ONE, Circuit(5, 5)}


WAITING = {"glimmerglass": b"ent-crs-fiber::10003,20004:2;", "calient": b"ent-crs-bulk::1.1.3>1.1.4:2;"}


@LANGUAGE
async def test_changes_in_progress_do_not_survive_reboot(language: str) -> None:
    async with opened(language, connect_seconds=5.0) as (lab, client):
        first = asyncio.create_task(client.connect([ONE]))
        await eventually_async(lambda: lab.switch.hardware.tuning, "the first change to begin")
        _, writer = await asyncio.open_connection("127.0.0.1", lab.port)
        writer.write(WAITING.get(language.removesuffix("-prompt"), b"ent-patch::3,12:2;ent-patch::12,3:2;"))
        await eventually_async(lambda: len(lab.switch._tasks) >= 2, "the second change to wait")
        await lab.switch.reboot()
        with pytest.raises(SessionLostError):
            await first
        await eventually_async(lambda: not lab.switch._tasks, "all commands to end")
        assert lab.paths.lit == set() == set(lab.switch.circuits)
        assert TWO not in lab.paths.order
        writer.close()
