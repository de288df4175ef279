"""The contract of every driver of optical switches, against its emulator, fault by fault: a suite to inherit.

A driver outside this repository inherits the contracts that concern its switch, and sets `make_bed`, which runs its
emulated switch.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from optical_switch.errors import OpticalSwitchError, RefusedError, SessionLimitError, UnreachableError
from optical_switch.model import Circuit, CircuitState, Port
from optical_switch.session import BatchResult, Notice, SwitchSession
from tests.support.switch_beds import PORTS, MakeBed, SwitchBed
from tests.support.waiting import eventually_async

BATCH = [Circuit(3, 8), Circuit(1, 2), Circuit(7, 4), Circuit(2, 1)]
ANSWER_SECONDS = 30.0
"""For answers that come."""
AT_REST_SECONDS = 0.1
"""Seconds without a change in the list of a switch that works in the background; its mirrors take 2 ms."""
SHORT = 0.3
"""Seconds for answers that do not come."""


class ContractRun:
    """A switch with open sessions; every reading is compared with the hardware and the light paths."""

    def __init__(self, bed: SwitchBed) -> None:
        self.bed = bed
        self.notices: list[Notice] = []
        self._sessions: list[SwitchSession] = []

    async def opened(self) -> SwitchSession:
        session = self.bed.access.new_session()
        session.subscribe(self.notices.append)
        self._sessions.append(session)
        await session.open()
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()

    async def set(self, session: SwitchSession, adds: Iterable[Circuit], deletes: Iterable[Circuit] = ()) -> None:
        """Have circuits set, and wait until the switch lists them."""
        adds, deletes = list(adds), list(deletes)
        result = await session.apply(deletes, adds)
        assert result == BatchResult()
        await self.settled(session, present=adds, absent=set(deletes) - set(adds))

    async def settled(
        self, session: SwitchSession, present: Iterable[Circuit] = (), absent: Iterable[Circuit] = ()
    ) -> None:
        """Wait until the list has these circuits connected and not those; at once if the switch confirms."""
        required, forbidden = set(present), set(absent)

        async def is_so() -> bool:
            found = await self.listed(session)
            return required <= found and not forbidden & found

        if session.capabilities.confirms:
            assert await is_so()
        else:
            await eventually_async(is_so, f"the list has {required} and not {forbidden}")
        await self.agrees(session)

    async def listed(self, session: SwitchSession) -> set[Circuit]:
        return {r.circuit for r in await session.read_circuits() if r.state is CircuitState.CONNECTED}

    async def agrees(self, session: SwitchSession) -> None:
        """Wait until list, crossbar and light paths are the same."""

        async def same() -> bool:
            crossbar = set(self.bed.hardware.crossbar.circuits)
            return await self.listed(session) == crossbar == self.bed.paths.lit

        await eventually_async(same, "the list of the switch, its crossbar and its light paths agree")

    async def refused(
        self, session: SwitchSession, adds: Iterable[Circuit], deletes: Iterable[Circuit] = ()
    ) -> set[Circuit]:
        """Have circuits set that the switch cannot set; return the circuits that are missing then."""
        adds = list(adds)
        with contextlib.suppress(RefusedError):
            await session.apply(list(deletes), adds)
        await self.at_rest(session)
        return set(adds) - await self.listed(session)

    async def at_rest(self, session: SwitchSession) -> None:
        """Wait until the list has not changed for some time, unless the switch confirms what it has done."""
        clock = asyncio.get_running_loop().time
        seen, since = None, clock()

        async def rests() -> bool:
            nonlocal seen, since
            found = await session.read_circuits()
            if found != seen:
                seen, since = found, clock()
            return session.capabilities.confirms or clock() - since >= AT_REST_SECONDS

        await eventually_async(rests, "the list does not change")


class SwitchContract:
    """The promises of every driver."""

    make_bed: MakeBed

    @contextlib.asynccontextmanager
    async def run(
        self, folder: Path, timeout: float = ANSWER_SECONDS
    ) -> AsyncIterator[tuple[ContractRun, SwitchSession]]:
        """Yield a switch and an open session."""
        async with type(self).make_bed(folder, timeout) as bed:
            run = ContractRun(bed)
            try:
                yield run, await run.opened()
            finally:
                await run.close()

    async def test_new_switch_lists_no_circuit(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (_, session):
            assert [r for r in await session.read_circuits() if r.state is not CircuitState.ABSENT] == []

    async def test_batch_is_set_and_removed(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH)
            assert run.bed.paths.lit == set(BATCH)
            await run.set(session, [], BATCH[1:3])
            assert run.bed.paths.lit == {BATCH[0], BATCH[3]}
            await run.set(session, [], [BATCH[0], BATCH[3]])
            assert run.bed.paths.lit == set()

    async def test_deletes_come_before_adds(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, [Circuit(1, 2), Circuit(3, 4)])
            await run.set(session, [Circuit(1, 4), Circuit(3, 2)], [Circuit(1, 2), Circuit(3, 4)])
            assert run.bed.paths.lit == {Circuit(1, 4), Circuit(3, 2)}

    async def test_empty_batch_changes_nothing(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            assert await session.apply([], []) == BatchResult()
            assert run.bed.paths.changes == 0

    @pytest.mark.parametrize("bad", [Circuit(1, 5), Circuit(5, 2)], ids=["input in use", "output in use"])
    async def test_circuit_at_a_port_in_use_is_refused(self, tmp_path: Path, bad: Circuit) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, [Circuit(1, 2)])
            assert bad in await run.refused(session, [Circuit(6, 6), bad])
            assert Circuit(1, 2) in run.bed.paths.lit, "the first circuit stays"

    @pytest.mark.parametrize("bad", [Circuit(PORTS + 1, 5), Circuit(5, PORTS + 1)], ids=["input", "output"])
    async def test_circuit_at_a_port_that_does_not_exist_is_refused(self, tmp_path: Path, bad: Circuit) -> None:
        async with self.run(tmp_path) as (run, session):
            with contextlib.suppress(OpticalSwitchError):
                assert bad in await run.refused(session, [bad])
            assert run.bed.paths.lit == set()
            again = await run.opened()
            await run.set(again, [Circuit(1, 2)])

    async def test_delete_of_an_absent_circuit_removes_no_other(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, [Circuit(1, 2), Circuit(3, 4)])
            for absent in ([Circuit(1, 3)], [Circuit(5, 4)], [Circuit(5, 6)]):
                await run.refused(session, [], absent)
                assert run.bed.paths.lit == {Circuit(1, 2), Circuit(3, 4)}

    async def test_refused_port_fails_its_batch_or_itself(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.refused_inputs.add(BATCH[1].input)
            assert BATCH[1] in await run.refused(session, BATCH)
            run.bed.faults.refused_inputs.clear()
            await run.refused(session, [], BATCH)
            await run.refused(session, [], await run.listed(session))
            await run.set(session, BATCH)

    async def test_named_ports_are_those_of_refused_circuits(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.refused_outputs.add(BATCH[2].output)
            try:
                result = await session.apply([], BATCH)
            except RefusedError as error:
                result = BatchResult(error=error)
            assert set(result.refused) <= {BATCH[2]}
            if result.error is not None:
                assert result.error.ports <= {Port("in", BATCH[2].input), Port("out", BATCH[2].output)}
                assert str(result.error)

    async def test_stuck_mirror_fails_its_circuit(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.stuck_inputs.add(BATCH[0].input)
            assert BATCH[0] in await run.refused(session, BATCH)
            assert BATCH[0] not in run.bed.paths.lit

    async def test_dead_port_fails_its_circuit(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.dead_ports.add(Port("out", BATCH[3].output))
            assert BATCH[3] in await run.refused(session, BATCH)

    async def test_slow_mirrors_are_waited_for(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.slow_inputs[BATCH[0].input] = 0.05
            await run.set(session, BATCH)

    async def test_list_that_lags_comes_to_agree(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.late_list = 0.05
            await session.apply([], BATCH)

            async def is_listed() -> bool:
                return await run.listed(session) == set(BATCH)

            await eventually_async(is_listed, "the list has the change")
            await run.agrees(session)

    async def test_session_after_a_reboot_reads_the_remaining_circuits(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH)
            await run.bed.reboot()
            assert await session.wait_closed()
            again = await run.opened()
            await run.agrees(again)

    async def test_circuits_of_another_writer_are_listed(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, [Circuit(1, 2)])
            await run.bed.another_writer(Circuit(5, 6))

            async def is_listed() -> bool:
                return await run.listed(session) == {Circuit(1, 2), Circuit(5, 6)}

            await eventually_async(is_listed, "the other writer's circuit is listed")
            await run.agrees(session)

    async def test_powers_are_at_ports_of_the_switch(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH)
            for reading in await session.read_powers():
                assert 1 <= reading.port.number <= PORTS
                assert -100 < reading.dbm < 30

    async def test_loss_of_every_circuit_is_measured_if_any_is(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            run.bed.faults.extra_loss_db[BATCH[1]] = 0.3
            await run.set(session, BATCH)
            losses = {reading.circuit: reading.db for reading in await session.read_losses()}
            assert bool(losses) == session.capabilities.measures_loss
            if losses:
                assert losses == {c: pytest.approx(db, abs=0.01) for c, db in run.bed.hardware.losses().items()}

    async def test_cancelled_caller_leaves_no_change_half_way(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            change = asyncio.create_task(session.apply([], BATCH))
            await asyncio.sleep(0)  # the change begins
            change.cancel()
            with contextlib.suppress(asyncio.CancelledError, OpticalSwitchError):
                await change
            again = await run.opened()
            await run.at_rest(again)
            await run.agrees(again)
            found = await run.listed(again)
            assert found in (set(), set(BATCH)) or (not session.capabilities.atomic and found < set(BATCH))

    async def test_listed_circuits_are_lit_after_random_changes(self, tmp_path: Path) -> None:
        dice = random.Random(42)
        async with self.run(tmp_path) as (run, session):
            for _ in range(15):
                present = await run.listed(session)
                removed = {c for c in present if dice.random() < 0.5}
                inputs = [n for n in range(1, PORTS + 1) if n not in {c.input for c in present - removed}]
                outputs = [n for n in range(1, PORTS + 1) if n not in {c.output for c in present - removed}]
                dice.shuffle(outputs)
                adds = [Circuit(*pair) for pair in zip(inputs, outputs, strict=False) if dice.random() < 0.6]
                run.bed.faults.refused_inputs = {dice.randint(1, PORTS)} if dice.random() < 0.3 else set()
                await run.refused(session, adds, removed)
                run.bed.faults.refused_inputs = set()
                await run.agrees(session)
                left = {r.circuit for r in await session.read_circuits() if r.state is CircuitState.FAILED}
                await run.refused(session, [], left)


class AgentContract(SwitchContract):
    """The promises of a driver of a management agent, about faults that a database alone does not have."""

    names_session_limit = True
    """False if the switch only closes a connection that it has no session for."""

    async def test_switch_that_refuses_everything(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH[:1])
            run.bed.faults.refuse_all = True
            try:
                result = await session.apply(BATCH[:1], BATCH[1:2])
            except RefusedError:
                pass
            else:
                assert result.error is not None or result.refused
            run.bed.faults.refuse_all = False
            assert run.bed.paths.lit == {BATCH[0]}
            await run.set(session, BATCH[1:2])

    async def test_silent_switch_is_unreachable(self, tmp_path: Path) -> None:
        async with self.run(tmp_path, SHORT) as (run, session):
            run.bed.faults.silent = True
            with pytest.raises(UnreachableError):
                await session.apply([], BATCH)
            assert run.bed.paths.lit == set()

    @pytest.mark.parametrize("fault", ["cut_before_answer", "lose_answer"])
    async def test_change_without_an_answer_is_known_after_reading(self, tmp_path: Path, fault: str) -> None:
        async with self.run(tmp_path, SHORT) as (run, session):
            setattr(run.bed.faults, fault, True)
            with pytest.raises(UnreachableError):
                await session.apply([], BATCH)
            setattr(run.bed.faults, fault, False)
            again = await run.opened()
            await run.at_rest(again)
            await run.agrees(again)
            found = await run.listed(again)
            assert found in (set(), set(BATCH)) or (not session.capabilities.atomic and found < set(BATCH))

    async def test_cut_session_ends_with_a_reason(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH)
            run.bed.cut()
            assert await session.wait_closed()
            with pytest.raises(UnreachableError):
                await session.apply(BATCH, [])
            again = await run.opened()
            assert await run.listed(again) == set(BATCH), "circuits stay"

    async def test_full_session_table_is_no_session(self, tmp_path: Path) -> None:
        async with self.run(tmp_path, SHORT) as (run, _):
            run.bed.faults.max_sessions = 1
            with pytest.raises(SessionLimitError if self.names_session_limit else UnreachableError):
                await (await run.opened()).read_circuits()
            run.bed.faults.max_sessions = None
            assert await (await run.opened()).read_circuits() is not None


class DatabaseContract(SwitchContract):
    """The promises of a driver of a switch whose state is in a database."""

    async def test_flushed_database_is_seen(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            assert run.bed.flush is not None
            await run.set(session, BATCH)
            await run.bed.flush()

            async def is_empty() -> bool:
                return await run.listed(session) == set()

            await eventually_async(is_empty, "the list is empty")
            await run.agrees(session)
            await run.set(session, BATCH)


class LossContract(SwitchContract):
    """The promises of a driver of a switch that measures losses."""

    async def test_raised_loss_is_reported(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH)
            run.bed.faults.extra_loss_db[BATCH[1]] = 6.0
            run.bed.hardware.changed()
            expected = run.bed.hardware.losses()[BATCH[1]]
            await eventually_async(
                lambda: any(
                    getattr(notice, "circuit", None) == BATCH[1] and abs(getattr(notice, "db", 0.0) - expected) < 0.01
                    for notice in run.notices
                ),
                "the raised loss is reported",
            )

    async def test_losses_have_accuracy_of_the_factory(self, tmp_path: Path) -> None:
        async with self.run(tmp_path) as (run, session):
            await run.set(session, BATCH)
            await eventually_async(
                lambda: (
                    {notice.circuit for notice in run.notices if getattr(notice, "accuracy", None) == 0.1} == set(BATCH)
                ),
                "losses with the accuracy of the factory",
            )
            assert {reading.accuracy for reading in await session.read_losses()} == {0.1}
