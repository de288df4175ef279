"""The contract of every dialect, against an emulated switch, with every fault that can be injected.

`DialectContract` is the promise, a suite to inherit; a class below it names a dialect and the language of its switch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from optical_switch.model import DARK_BELOW_DBM, Circuit, Port
from tests.support.controller import tl1
from tests.support.controller.tl1 import Lab
from tests.support.waiting import eventually_async
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS, Calient, Dialect
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    InvalidCommandError,
    OutcomeUnknownError,
    PartialCompletionError,
    SessionLostError,
    SwitchTimeoutError,
    Tl1Error,
)
from tl1_driver.protocol.messages import Autonomous
from tl1_driver.protocol.session import ExchangeDeadlines

pytestmark = pytest.mark.virtual_time
BULK = [Circuit(3, 8), Circuit(1, 2), Circuit(7, 4), Circuit(2, 1)]
SHORT = 0.08
"""A time-out in seconds that tests can afford to wait for."""


def power(circuits):
    """Light of -1 to -4 dBm enters inputs 1 to 4, and each connection loses 2 dB."""
    entering = {Port("in", number): -float(number) for number in range(1, 5)}
    leaving = {Port("out", c.output): entering[Port("in", c.input)] - 2 for c in circuits if c.input <= 4}
    return entering | leaving


async def listed(client: SwitchClient) -> set[Circuit]:
    return {state.circuit for state in await client.circuits() if state.made}


class DialectContract:
    """Behavior that every dialect promises."""

    dialect: ClassVar[str]
    language: ClassVar[str]
    shows_owners: ClassVar[bool]

    @property
    def spoken(self) -> Dialect:
        dialect = replace(DIALECTS[self.dialect], deadlines=ExchangeDeadlines(acknowledged=0.1))
        return replace(dialect, poll_seconds=0.002) if isinstance(dialect, Calient) else dialect

    @contextlib.asynccontextmanager
    async def opened(
        self, client: dict[str, Any] | None = None, spoken: Dialect | None = None, **options
    ) -> AsyncIterator[tuple[Lab, SwitchClient]]:
        """Yield a switch with these options, and an open client with its own options and dialect."""
        async with tl1.emulated(self.spoken, dialect=self.language, **options) as lab:
            yield lab, await lab.opened(spoken or self.spoken, **client or {})

    async def agrees(self, lab: Lab, client: SwitchClient) -> None:
        """Check that the listed circuits, the crossbar and the lit paths are the same."""
        assert await listed(client) == set(lab.switch.circuits) == lab.paths.lit

    async def cleared(self, lab: Lab, client: SwitchClient) -> None:
        """Remove all listed circuits that a fault left behind, and connect again."""
        for state in await client.circuits():
            await client.disconnect([state.circuit])
        assert await client.circuits() == []
        await client.connect(BULK)
        await self.agrees(lab, client)

    async def test_bulk_in_order(self) -> None:
        async with self.opened() as (lab, client):
            await client.connect(BULK)
            assert lab.paths.order == BULK
            await self.agrees(lab, client)
            await client.disconnect(BULK[1:3])
            assert lab.paths.lit == {BULK[0], BULK[3]}
            await self.agrees(lab, client)
            await client.connect(BULK[1:3])
            await client.disconnect(BULK)
            assert lab.paths.lit == set()

    async def test_bulk_longer_than_a_command(self) -> None:
        narrow = replace(self.spoken, wire=replace(self.spoken.wire, send_limit=60))
        async with self.opened(spoken=narrow) as (lab, client):
            circuits = [Circuit(n, 9 - n) for n in range(1, 9)]
            await client.connect(circuits)
            assert lab.paths.order == circuits
            assert await listed(client) == set(circuits)
            await client.disconnect(circuits)
            assert lab.paths.lit == set()

    async def test_confirmed_means_lit(self) -> None:
        async with self.opened(connect_seconds=0.05) as (lab, client):
            for circuits in (BULK[:1], BULK[1:]):
                began = asyncio.get_running_loop().time()
                await client.connect(circuits)
                assert asyncio.get_running_loop().time() - began >= 0.05
                assert set(circuits) <= lab.paths.lit

    async def test_powers(self) -> None:
        async with self.opened(power=power) as (_, client):
            await client.connect([Circuit(1, 8), Circuit(6, 5)])
            powers = await client.powers()
            for port in (Port("in", n) for n in range(1, 5)):
                assert powers[port] == pytest.approx(-port.number, abs=0.01)
            assert powers[Port("out", 8)] == pytest.approx(-3, abs=0.01)
            for port in (Port("in", 6), Port("out", 5)):
                assert powers[port] < DARK_BELOW_DBM

    async def test_dark_port_and_drifting_loss(self) -> None:
        async with self.opened(power=power) as (lab, client):
            await client.connect([Circuit(1, 8), Circuit(2, 7)])
            lab.switch.faults.dark_ports.add(Port("in", 1))
            lab.switch.faults.drift_db_per_second[Port("out", 7)] = 50.0
            lab.switch.light_changed()
            first = await client.powers()
            assert first[Port("in", 1)] < DARK_BELOW_DBM
            assert first[Port("out", 8)] < DARK_BELOW_DBM
            await asyncio.sleep(0.05)
            assert (await client.powers())[Port("out", 7)] < first[Port("out", 7)] - 1

    async def test_loss_of_light_raises_and_clears_alarm(self) -> None:
        received: list[Autonomous] = []
        async with self.opened({"on_autonomous": received.append}, power=power) as (lab, client):
            await client.connect([Circuit(2, 7), Circuit(5, 5)])
            lab.switch.faults.dark_ports.add(Port("in", 2))
            lab.switch.light_changed()
            lab.switch.light_changed()
            lab.switch.faults.dark_ports.clear()
            lab.switch.light_changed()
            await client.circuits()
            alarms = [alarm for message in received for alarm in client.alarms(message)]
            assert [(alarm.port, alarm.condition, alarm.cleared) for alarm in alarms] == [
                (Port("in", 2), "LOS", False),
                (Port("in", 2), "LOS", True),
            ]

    @pytest.mark.parametrize("bad", [Circuit(1, 5), Circuit(5, 2)])
    @pytest.mark.parametrize("others", [[], [Circuit(6, 6)]])
    async def test_busy_port_is_denied_and_stays_as_it_was(self, bad: Circuit, others: list[Circuit]) -> None:
        async with self.opened() as (lab, client):
            await client.connect([Circuit(1, 2)])
            with pytest.raises(CommandDeniedError) as caught:
                await client.connect([*others, bad])
            assert caught.value.code
            assert Circuit(1, 2) in lab.paths.lit
            assert bad not in lab.paths.lit
            await self.agrees(lab, client)

    @pytest.mark.parametrize("bad", [Circuit(9, 5), Circuit(5, 9), Circuit(0, 1)])
    async def test_port_that_is_not_there(self, bad: Circuit) -> None:
        async with self.opened() as (lab, client):
            for circuits in ([bad], [bad, Circuit(1, 1)]):
                with pytest.raises((CommandDeniedError, InvalidCommandError)):
                    await client.connect(circuits)
                assert lab.paths.lit == set()
            await client.connect([Circuit(1, 1)])

    async def test_disconnect_of_absent_circuit_is_denied_and_removes_nothing(self) -> None:
        async with self.opened() as (lab, client):
            await client.connect([Circuit(1, 2), Circuit(3, 4)])
            for absent in ([Circuit(1, 3)], [Circuit(5, 4)], [Circuit(1, 2), Circuit(3, 2)]):
                with pytest.raises(CommandDeniedError):
                    await client.disconnect(absent)
                assert lab.paths.lit == {Circuit(1, 2), Circuit(3, 4)}

    @pytest.mark.parametrize("circuits", [BULK[:1], BULK])
    async def test_broken_mirror_denies(self, circuits: list[Circuit]) -> None:
        async with self.opened() as (lab, client):
            lab.switch.faults.refused_inputs.add(circuits[-1].input)
            with pytest.raises(CommandDeniedError):
                await client.connect(circuits)
            assert lab.paths.lit <= set(circuits[:-1])
            await self.agrees(lab, client)
            lab.switch.faults.refused_inputs.clear()
            await self.cleared(lab, client)

    @pytest.mark.parametrize("code", ["DENY", "PRTL", "COMPLD"])
    async def test_partial_bulk(self, code: str) -> None:
        async with self.opened() as (lab, client):
            faults = lab.switch.faults
            faults.refused_outputs, faults.partial_bulk, faults.partial_code = {BULK[2].output}, True, code
            silent = code == "COMPLD"
            with contextlib.nullcontext() if silent else pytest.raises(CommandDeniedError):
                await client.connect(BULK)
            assert lab.paths.lit >= set(BULK[:2])
            assert BULK[2] not in lab.paths.lit
            await self.agrees(lab, client)
            faults.refused_outputs = set()
            await self.cleared(lab, client)

    async def test_everything_denied(self) -> None:
        async with self.opened() as (lab, client):
            lab.switch.faults.refuse_all = True
            for attempt in (client.connect(BULK), client.disconnect(BULK), client.circuits(), client.powers()):
                with pytest.raises(CommandDeniedError):
                    await attempt
            lab.switch.faults.refuse_all = False
            await client.connect(BULK)

    async def test_refusal_without_ctag_is_understood_at_once(self) -> None:
        async with self.opened() as (lab, client):
            await client.connect([Circuit(1, 2)])
            lab.switch.faults.ctag_lost = True
            began = asyncio.get_running_loop().time()
            with pytest.raises(CommandDeniedError):
                await client.connect([Circuit(1, 2)])
            assert asyncio.get_running_loop().time() - began < 0.4

    @pytest.mark.parametrize("circuits", [BULK[:1], BULK])
    @pytest.mark.parametrize("making", [True, False])
    async def test_circuits_agree_after_session_lost_before_answer(self, circuits: list[Circuit], making: bool) -> None:
        async with self.opened() as (lab, client):
            if not making:
                await client.connect(circuits)
            lab.switch.faults.cut_before_answer = True
            with pytest.raises(SessionLostError):
                await (client.connect(circuits) if making else client.disconnect(circuits))
            lab.switch.faults.cut_before_answer = False
            await client.open()
            await self.agrees(lab, client)
            await self.cleared(lab, client)

    async def test_cut_at_any_moment(self) -> None:
        async with self.opened(connect_seconds=0.02) as (lab, client):
            for delay in (0.0, 0.005, 0.015, 0.03):
                change = asyncio.create_task(client.connect(BULK))
                await asyncio.sleep(delay)
                lab.switch.cut()
                with contextlib.suppress(SessionLostError):
                    await change
                await client.wait_closed()
                await client.open()
                await asyncio.sleep(0.05)
                await self.agrees(lab, client)
                for state in await client.circuits():
                    await client.disconnect([state.circuit])

    @pytest.mark.parametrize("fault", ["lose_answer", "acknowledge_only", "silent"])
    @pytest.mark.parametrize("circuits", [BULK[:1], BULK])
    async def test_no_answer(self, fault: str, circuits: list[Circuit]) -> None:
        async with self.opened({"timeout": SHORT}) as (lab, client):
            setattr(lab.switch.faults, fault, True)
            with pytest.raises(SwitchTimeoutError):
                await client.connect(circuits)
            setattr(lab.switch.faults, fault, False)
            for change in (client.connect([Circuit(8, 8)]), client.disconnect(circuits)):
                with pytest.raises(OutcomeUnknownError):
                    await change
            assert Circuit(8, 8) not in lab.paths.lit
            await self.agrees(lab, client)
            await self.cleared(lab, client)

    @pytest.mark.parametrize("circuits", [BULK[:1], BULK])
    async def test_answer_after_deadline_goes_to_no_other_command(self, circuits: list[Circuit]) -> None:
        async with self.opened({"timeout": SHORT}) as (lab, client):
            lab.switch.faults.answer_delay = SHORT + 0.05
            with pytest.raises(SwitchTimeoutError):
                await client.connect(circuits)
            lab.switch.faults.answer_delay = 0.0
            await asyncio.gather(client.circuits(), asyncio.sleep(0.1))
            await self.agrees(lab, client)
            await self.cleared(lab, client)

    @pytest.mark.parametrize("locked", [False, True])
    async def test_foreign_circuits_stay(self, locked: bool) -> None:
        async with self.opened() as (lab, client):
            foreign = Circuit(5, 6)
            await lab.switch.connect_by_hand(foreign, "noc", locked=locked)
            attempts = [
                client.connect([Circuit(5, 1)]),
                client.connect([Circuit(1, 6)]),
                client.connect([Circuit(2, 2), Circuit(5, 1)]),
                client.connect([Circuit(2, 3), Circuit(1, 6)]),
                client.disconnect([Circuit(5, 1)]),
                client.disconnect([Circuit(1, 6)]),
            ]
            for attempt in attempts:
                with pytest.raises(CommandDeniedError):
                    await attempt
                assert foreign in lab.paths.lit
            [state] = [state for state in await client.circuits() if state.circuit == foreign]
            if self.shows_owners:
                assert (state.locked, state.owner) in ((True, "noc"), (locked, ""))
            if locked:
                for circuits in ([foreign], [foreign, *await listed(client) - {foreign}]):
                    with pytest.raises(CommandDeniedError):
                        await client.disconnect(circuits)
            await self.agrees(lab, client)
            assert foreign in lab.paths.lit

    async def test_pages_and_alarms_between_parts_are_handled(self) -> None:
        alarms: list[Autonomous] = []
        async with self.opened({"on_autonomous": alarms.append}, power=power) as (lab, client):
            faults = lab.switch.faults
            faults.rows_per_part, faults.alarm_before_answer, faults.alarm_between_parts = 3, True, True
            circuits = [Circuit(n, n) for n in range(1, 9)]
            await client.connect(circuits)
            await self.agrees(lab, client)
            assert len(await client.powers()) >= 12
            await client.disconnect(circuits)
            fans = [alarm for alarm in alarms if "FAN" in alarm.lines[0]]
            assert len(fans) >= 4
            assert [int(alarm.atag) for alarm in alarms] == list(range(1, len(alarms) + 1))
            assert client.alarms(fans[0])[0].port is None

    async def test_login_lost(self) -> None:
        login = {"user": "admin", "password": "p;w"}
        async with self.opened(login, **login) as (lab, client):
            lab.switch.log_out()
            assert await client.circuits() == []
            lab.switch.log_out()
            with pytest.raises(CommandDeniedError) as caught:
                await client.connect(BULK)
            assert caught.value.code == "PLNA"
            assert lab.paths.lit == set()
            await client.connect(BULK)
            await self.agrees(lab, client)

    async def test_reads_are_answered_while_a_change_is_under_way(self) -> None:
        async with self.opened(connect_seconds=0.1) as (lab, client):
            change = asyncio.create_task(client.connect(BULK[:1]))
            await asyncio.sleep(0.02)
            assert await listed(client) == set()
            assert not change.done()
            await change
            await self.agrees(lab, client)

    async def test_cancelled_caller_leaves_no_change_half_way(self) -> None:
        async with self.opened(connect_seconds=0.05) as (lab, client):
            change = asyncio.create_task(client.connect(BULK[:1]))
            await asyncio.sleep(0.01)
            change.cancel()
            await client.connect([Circuit(8, 3)])
            assert lab.paths.lit == {BULK[0], Circuit(8, 3)}
            await self.agrees(lab, client)

    async def test_failing_light_paths_deny_changes(self) -> None:
        async with self.opened() as (lab, client):
            lab.paths.error = OSError("no such interface")
            for circuits in (BULK[:1], BULK):
                with pytest.raises(CommandDeniedError):
                    await client.connect(circuits)
                await self.agrees(lab, client)
            lab.paths.error = None
            await self.cleared(lab, client)

    async def test_listed_circuits_are_lit_after_random_changes_and_faults(self) -> None:
        """After any change and fault, the listed circuits are lit, and the locked circuit is unchanged."""
        async with self.opened({"timeout": 0.05}) as (lab, client):
            await lab.switch.connect_by_hand(Circuit(8, 8), locked=True)
            faults = ["cut_before_answer", "lose_answer", "partial_bulk", "refuse_all", "acknowledge_only", "", "", ""]
            for number in range(40):
                fault = faults[number % len(faults)]
                if fault:
                    setattr(lab.switch.faults, fault, True)
                lab.switch.faults.refused_inputs = {1 + number % 5} if number % 3 == 0 else set()
                circuits = [
                    Circuit(1 + (number * step) % 8, 1 + (number + step) % 8) for step in range(1, 2 + number % 4)
                ]
                with contextlib.suppress(Tl1Error):
                    await client.connect(circuits)
                if fault:
                    setattr(lab.switch.faults, fault, False)
                await client.open()
                await asyncio.sleep(0.005)
                await self.agrees(lab, client)
                assert Circuit(8, 8) in lab.paths.lit
                for state in [state for state in await client.circuits() if state.circuit != Circuit(8, 8)][
                    : number % 3
                ]:
                    await client.disconnect([state.circuit])


class TestGlimmerglass(DialectContract):
    dialect = language = "glimmerglass"
    shows_owners = True

    async def test_denied_bulk_changes_nothing(self) -> None:
        async with self.opened() as (lab, client):
            lab.switch.faults.refused_inputs.add(BULK[2].input)
            with pytest.raises(CommandDeniedError):
                await client.connect(BULK)
            assert lab.paths.lit == set()


class TestCalient(DialectContract):
    dialect = language = "calient"
    shows_owners = True

    async def test_activation_that_is_denied_leaves_nothing_entered(self) -> None:
        async with self.opened() as (lab, client):
            lab.switch.faults.refused_inputs.add(1)
            with pytest.raises(CommandDeniedError) as caught:
                await client.connect([Circuit(1, 1)])
            assert not isinstance(caught.value, PartialCompletionError)
            assert await client.circuits() == []

    async def test_circuit_that_is_only_entered_is_seen_and_can_be_removed(self) -> None:
        async with self.opened() as (lab, client):
            lab.switch.faults.cut_before_answer = True
            with pytest.raises(SessionLostError):
                await client.connect([Circuit(1, 1)])
            lab.switch.faults.cut_before_answer = False
            await client.open()
            [state] = await client.circuits()
            assert (state.circuit, state.made, lab.paths.lit) == (Circuit(1, 1), False, set())
            await client.disconnect([Circuit(1, 1)])
            await client.connect([Circuit(1, 1)])
            assert lab.paths.lit == {Circuit(1, 1)}

    async def test_bulk_that_frees_ports_is_slow_and_driver_never_requests_one(self) -> None:
        async with self.opened(connect_seconds=0.04) as (lab, client):
            await client.connect([Circuit(1, 1), Circuit(2, 2)])
            reader, writer = await asyncio.open_connection("127.0.0.1", lab.port)
            began = asyncio.get_running_loop().time()
            writer.write(b"ent-crs-bulk::1.1.1>1.1.3&1.1.4>1.1.4:1;")
            await eventually_async(lambda: Circuit(1, 3) in lab.paths.lit, "the new circuit's light")
            assert Circuit(1, 1) not in lab.paths.lit
            status = ""
            while "Completed" not in status:
                await asyncio.sleep(0.002)  # only a pause lets the time of the switch pass
                writer.write(b"rtrv-saverecall:::2;")
                status = (await reader.readuntil(b'"')).decode() + (await reader.readuntil(b'"')).decode()
            assert asyncio.get_running_loop().time() - began >= 0.1
            writer.close()
            with pytest.raises(CommandDeniedError, match="in use"):
                await client.connect([Circuit(1, 5), Circuit(5, 6)])
            assert Circuit(1, 3) in lab.paths.lit

    async def test_bulk_that_never_ends_raises_timeout(self) -> None:
        async with self.opened(spoken=replace(self.spoken, polls=5), connect_seconds=1.0) as (_, client):
            with pytest.raises(SwitchTimeoutError, match="still in progress"):
                await client.connect(BULK)
            with pytest.raises(OutcomeUnknownError):
                await client.connect(BULK)


class TestCalientWithPrompt(TestCalient):
    language = "calient-prompt"


class TestPolatis(DialectContract):
    dialect = language = "polatis"
    shows_owners = False

    async def test_patches_are_entered_one_by_one(self) -> None:
        transcript: list[tuple[str, bytes]] = []
        async with self.opened({"transcript": lambda *entry: transcript.append(entry)}) as (lab, client):
            await client.connect(BULK)
            assert lab.paths.calls == len(BULK)
            assert sum(data.count(b"ENT-PATCH") for direction, data in transcript if direction == "sent") == len(BULK)


class TestPolatisOutputFirst(TestPolatis):
    dialect = language = "polatis-output-first"

    async def test_wrong_order_is_refused_and_connects_nothing(self) -> None:
        async with self.opened(spoken=DIALECTS["polatis"]) as (lab, client):
            with pytest.raises(CommandDeniedError):
                await client.connect([Circuit(1, 2)])
            assert lab.paths.lit == set()

    async def test_commands_carry_the_name_of_the_switch(self) -> None:
        transcript: list[tuple[str, bytes]] = []
        async with self.opened({"transcript": lambda *entry: transcript.append(entry)}, sid="ocs-7.lab") as (_, client):
            await client.connect([Circuit(1, 2)])
            assert b'ENT-PATCH:"ocs-7.lab":10,1:' in b"".join(
                data for direction, data in transcript if direction == "sent"
            )


def test_every_dialect_is_held_to_the_contract() -> None:
    kinds = [kind for base in DialectContract.__subclasses__() for kind in (base, *base.__subclasses__())]
    # Some are only what several have in common.
    assert {kind.dialect for kind in kinds if hasattr(kind, "dialect")} == set(DIALECTS)
