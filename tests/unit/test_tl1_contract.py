"""Each dialect held to the contract (`tests/support/tl1_contract.py`), and what is particular to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.tl1_contract import BULK, DialectContract
from tests.support.waiting import eventually_async
from tl1_driver.circuits import Circuit
from tl1_driver.dialects import DIALECTS
from tl1_driver.errors import Denied, OutcomeUnknown, PartlyDone, SessionLost, TimedOut

pytestmark = pytest.mark.virtual_time


class TestGlimmerglass(DialectContract):
    dialect = language = "glimmerglass"
    shows_owners = True

    async def test_denied_bulk_changes_nothing(self) -> None:
        async with self.emulated() as lab:
            client = await lab.opened()
            lab.switch.faults.refused_inputs.add(BULK[2].input)
            with pytest.raises(Denied):
                await client.connect(BULK)
            assert lab.paths.lit == set()


class TestCalient(DialectContract):
    dialect = language = "calient"
    shows_owners = True

    async def test_activation_that_is_denied_leaves_nothing_entered(self) -> None:
        async with self.emulated() as lab:
            client = await lab.opened()
            lab.switch.faults.refused_inputs.add(1)
            with pytest.raises(Denied) as caught:
                await client.connect([Circuit(1, 1)])
            assert not isinstance(caught.value, PartlyDone)
            assert await client.circuits() == []

    async def test_circuit_that_is_only_entered_is_seen_and_can_be_removed(self) -> None:
        async with self.emulated() as lab:
            client = await lab.opened()
            lab.switch.faults.cut_before_answer = True
            with pytest.raises(SessionLost):
                await client.connect([Circuit(1, 1)])
            lab.switch.faults.cut_before_answer = False
            await client.open()
            [state] = await client.circuits()
            assert (state.circuit, state.made, lab.paths.lit) == (Circuit(1, 1), False, set())
            await client.disconnect([Circuit(1, 1)])
            await client.connect([Circuit(1, 1)])
            assert lab.paths.lit == {Circuit(1, 1)}

    async def test_bulk_that_frees_its_ports_takes_longer_and_our_driver_never_asks_for_one(self) -> None:
        async with self.emulated(connect_seconds=0.04) as lab:
            client = await lab.opened()
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
            with pytest.raises(Denied, match="in use"):
                await client.connect([Circuit(1, 5), Circuit(5, 6)])
            assert Circuit(1, 3) in lab.paths.lit

    async def test_bulk_that_never_ends_is_given_up(self) -> None:
        async with self.emulated(connect_seconds=1.0) as lab:
            client = await lab.opened(replace(self.spoken, polls=5))
            with pytest.raises(TimedOut, match="still in progress"):
                await client.connect(BULK)
            with pytest.raises(OutcomeUnknown):
                await client.connect(BULK)


class TestCalientWithPrompt(TestCalient):
    language = "calient-prompt"


class TestPolatis(DialectContract):
    dialect = language = "polatis"
    shows_owners = False
    silent_partial_is_noticed = True

    async def test_patches_are_entered_one_by_one(self) -> None:
        sent: list[bytes] = []
        async with self.emulated() as lab:
            client = await lab.opened(transcript=lambda how, data: sent.append(data) if how == "sent" else None)
            await client.connect(BULK)
            assert lab.paths.calls == len(BULK)
            assert sum(data.count(b"ENT-PATCH") for data in sent) == len(BULK)


class TestPolatisOutputFirst(TestPolatis):
    dialect = language = "polatis-output-first"

    async def test_wrong_order_is_refused_and_connects_nothing(self) -> None:
        async with self.emulated() as lab:
            client = await lab.opened(DIALECTS["polatis"])
            with pytest.raises(Denied):
                await client.connect([Circuit(1, 2)])
            assert lab.paths.lit == set()

    async def test_commands_carry_the_name_of_the_switch(self) -> None:
        sent: list[bytes] = []
        async with self.emulated(sid="ocs-7.lab") as lab:
            client = await lab.opened(transcript=lambda how, data: sent.append(data) if how == "sent" else None)
            await client.connect([Circuit(1, 2)])
            assert b'ENT-PATCH:"ocs-7.lab":10,1:' in b"".join(sent)


def test_every_dialect_is_held_to_the_contract() -> None:
    kinds = [kind for base in DialectContract.__subclasses__() for kind in (base, *base.__subclasses__())]
    # Some are only what several have in common.
    assert {kind.dialect for kind in kinds if hasattr(kind, "dialect")} == set(DIALECTS)
