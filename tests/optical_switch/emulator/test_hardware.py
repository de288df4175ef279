"""Changes and readings of the emulated hardware under each fault."""

from __future__ import annotations

import asyncio

import pytest

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.circuit_history import MAX_CHANGES
from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from optical_switch.emulator.hardware import PASS_LOSS_DB, OpticalHardware
from optical_switch.model import Circuit, CircuitReading, CircuitState, Port
from tests.support.emulated_hardware import HandClock, RecordedPaths, hardware_of, set_all

ONE, TWO, THREE = Circuit(1, 2), Circuit(2, 1), Circuit(3, 3)


def states(hardware: OpticalHardware) -> dict[Circuit, CircuitState]:
    return {reading.circuit: reading.state for reading in hardware.readings()}


async def test_circuit_is_tuning_until_switching_time_is_over() -> None:
    clock = HandClock()
    hardware = hardware_of(RecordedPaths(), clock, connect_seconds=0.5)
    seen: list[dict[Circuit, CircuitState]] = []
    hardware.listeners.append(lambda: seen.append(states(hardware)))
    began = clock.time
    await set_all(hardware, [ONE])
    assert clock.time - began >= 0.5
    assert seen == [{ONE: CircuitState.TUNING}, {ONE: CircuitState.CONNECTED}]
    assert hardware.tuning == frozenset() and not hardware.busy


async def test_moved_circuit_is_replaced_in_one_change() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    await set_all(hardware, [ONE])
    await set_all(hardware, [Circuit(1, 4)], removed=[ONE])
    assert paths.calls == [((), (ONE,)), ((ONE,), (Circuit(1, 4),))]
    assert paths.lit == {Circuit(1, 4)}


async def test_stuck_mirror_fails_after_switching_time_and_others_are_set() -> None:
    clock, paths = HandClock(), RecordedPaths()
    hardware = hardware_of(paths, clock, connect_seconds=0.5)
    hardware.faults.stuck_inputs.add(2)
    began = clock.time
    with pytest.raises(RefusalError, match="mirrors of input 2") as caught:
        await set_all(hardware, [ONE, TWO])
    assert clock.time - began >= 0.5
    refusal = caught.value
    assert (refusal.reason, refusal.ports, refusal.partial) == (SwitchRefusal.FAILED, {Port("in", 2)}, True)
    assert paths.lit == {ONE}
    assert states(hardware) == {ONE: CircuitState.CONNECTED, TWO: CircuitState.FAILED}
    with pytest.raises(RefusalError) as caught:
        await set_all(hardware, [Circuit(2, 4)])
    assert not caught.value.partial
    assert states(hardware) == {ONE: CircuitState.CONNECTED, Circuit(2, 4): CircuitState.FAILED}


@pytest.mark.parametrize("keeps", [True, False])
async def test_failed_circuit_is_listed_only_if_the_switch_keeps_it(keeps: bool) -> None:
    hardware = hardware_of(RecordedPaths(), keeps_failed=keeps)
    hardware.faults.stuck_inputs.add(1)
    with pytest.raises(RefusalError):
        await set_all(hardware, [ONE])
    assert states(hardware) == ({ONE: CircuitState.FAILED} if keeps else {})
    if keeps:
        await (await hardware.plan_and_set(lambda: hardware.disconnecting([ONE])))
        assert states(hardware) == {}
    else:
        with pytest.raises(RefusalError):
            hardware.disconnecting([ONE])


async def test_failed_circuit_is_set_once_the_mirror_works() -> None:
    hardware = hardware_of(RecordedPaths())
    hardware.faults.stuck_inputs.add(1)
    with pytest.raises(RefusalError):
        await set_all(hardware, [ONE])
    hardware.faults.stuck_inputs.clear()
    await set_all(hardware, [ONE])
    assert states(hardware) == {ONE: CircuitState.CONNECTED}


async def test_dead_port_fails_its_circuits() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    await set_all(hardware, [ONE, THREE])
    hardware.faults.dead_ports = {Port("out", ONE.output), Port("in", 4)}
    failed = CircuitReading(ONE, CircuitState.FAILED, "output 2 has failed")
    assert hardware.readings() == [failed, CircuitReading(THREE, CircuitState.CONNECTED)]
    assert hardware.losses() == {THREE: PASS_LOSS_DB}
    with pytest.raises(RefusalError) as caught:
        await set_all(hardware, [Circuit(4, 1)])
    assert caught.value.ports == {Port("in", 4)}
    assert paths.lit == {ONE, THREE}
    with pytest.raises(RefusalError, match="input 4 has failed"):
        await hardware.connect_by_hand(Circuit(4, 1))
    assert paths.lit == {ONE, THREE}
    hardware.faults.dead_ports.clear()
    assert states(hardware)[ONE] is CircuitState.CONNECTED


async def test_extra_loss_is_measured() -> None:
    hardware = hardware_of(RecordedPaths())
    await set_all(hardware, [ONE, TWO])
    hardware.faults.extra_loss_db = {ONE: 2.5, THREE: 1.0}
    assert hardware.losses() == {ONE: PASS_LOSS_DB + 2.5, TWO: PASS_LOSS_DB}


async def test_refusals_name_reason_and_ports() -> None:
    hardware = hardware_of(RecordedPaths())
    await set_all(hardware, [ONE])
    hardware.faults.refused_outputs.add(4)
    for circuits, reason, ports in (
        ([Circuit(9, 1)], SwitchRefusal.UNKNOWN_PORT, {Port("in", 9)}),
        ([Circuit(3, 0)], SwitchRefusal.UNKNOWN_PORT, {Port("out", 0)}),
        ([Circuit(1, 3)], SwitchRefusal.IN_USE, {Port("in", 1)}),
        ([Circuit(3, 2)], SwitchRefusal.IN_USE, {Port("out", 2)}),
        ([Circuit(3, 4)], SwitchRefusal.FAILED, {Port("out", 4)}),
    ):
        with pytest.raises(RefusalError) as caught:
            hardware.connecting(circuits)
        assert (caught.value.reason, caught.value.ports) == (reason, ports)
    with pytest.raises(RefusalError) as caught:
        hardware.connecting([THREE], removed=[TWO])
    assert caught.value.reason is SwitchRefusal.NOT_CONNECTED


async def test_locked_circuit_is_neither_removed_nor_replaced() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    await hardware.connect_by_hand(ONE, "noc", locked=True)
    for plan in (lambda: hardware.disconnecting([ONE]), lambda: hardware.connecting([Circuit(1, 3)], [ONE])):
        with pytest.raises(RefusalError, match="locked by noc") as caught:
            await hardware.plan_and_set(plan)
        assert caught.value.reason is SwitchRefusal.LOCKED
    assert not hardware.busy
    assert paths.lit == {ONE}
    assert hardware.readings() == [CircuitReading(ONE, CircuitState.CONNECTED, locked=True, owner="noc")]


async def test_circuit_set_by_hand_is_refused_before_light_moves() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    await set_all(hardware, [ONE])
    with pytest.raises(RefusalError):
        await hardware.connect_by_hand(Circuit(1, 4))
    assert paths.lit == {ONE} == set(hardware.circuits)


async def test_reset_loses_circuits_owners_locks_and_failures() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    await hardware.connect_by_hand(ONE, locked=True)
    hardware.faults.stuck_inputs.add(2)
    with pytest.raises(RefusalError):
        await set_all(hardware, [TWO])
    calls: list[None] = []
    hardware.listeners.append(lambda: calls.append(None))
    await hardware.reset()
    assert (hardware.readings(), paths.lit, hardware.owners, hardware.locked) == ([], set(), {}, set())
    assert calls == [None]


async def test_invalid_change_is_refused_before_light_moves() -> None:
    """An agent may build a change of its own, and an error there must not part the crossbar from the light paths."""
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    await set_all(hardware, [ONE])
    with pytest.raises(RefusalError):
        await (await hardware.plan_and_set(lambda: CrossbarChange((), (Circuit(1, 3),))))
    assert paths.lit == {ONE} == set(hardware.circuits)


async def test_list_that_comes_to_lag_does_not_go_back() -> None:
    hardware = hardware_of(RecordedPaths(), HandClock())
    await set_all(hardware, [ONE])
    assert hardware.circuits == (ONE,)
    hardware.faults.late_list = 100.0
    await set_all(hardware, [TWO])
    assert hardware.circuits == (ONE,)


async def test_list_lags_behind_by_its_fault() -> None:
    clock = HandClock()
    hardware = hardware_of(RecordedPaths(), clock)
    hardware.faults.late_list = 2.0
    await set_all(hardware, [ONE])
    assert (hardware.circuits, hardware.readings()) == ((), [])
    assert hardware.crossbar.circuits == (ONE,)
    clock.time += 1.5
    await set_all(hardware, [TWO])
    assert hardware.circuits == ()
    clock.time += 1.0
    assert hardware.circuits == (ONE,)
    assert states(hardware) == {ONE: CircuitState.CONNECTED}
    clock.time += 1.5
    assert hardware.circuits == (ONE, TWO)
    await (await hardware.plan_and_set(lambda: hardware.disconnecting([ONE])))
    assert hardware.circuits == (ONE, TWO)
    hardware.faults.late_list = 0.0
    assert hardware.circuits == (TWO,)


async def test_list_lags_by_a_bounded_number_of_changes() -> None:
    clock = HandClock()
    hardware = hardware_of(RecordedPaths(), clock)
    hardware.faults.late_list = 1e9
    for _ in range(MAX_CHANGES):
        await set_all(hardware, [ONE])
        await (await hardware.plan_and_set(lambda: hardware.disconnecting([ONE])))
    kept = hardware._table._history._changes
    assert len(kept) == MAX_CHANGES
    assert hardware.circuits in ((), (ONE,))


async def test_change_after_another_takes_its_own_time() -> None:
    clock = HandClock()
    hardware = hardware_of(RecordedPaths(), clock, connect_seconds=0.5)
    ends: list[float] = []

    async def connect(circuit: Circuit) -> None:
        await set_all(hardware, [circuit])
        ends.append(clock.time)

    began = clock.time
    await asyncio.gather(connect(ONE), connect(TWO))
    assert ends[0] - began == pytest.approx(0.5, abs=0.01)
    assert ends[1] - ends[0] == pytest.approx(0.5, abs=0.01)


async def test_arrival_of_a_command_counts() -> None:
    clock = HandClock()
    hardware = hardware_of(RecordedPaths(), clock, connect_seconds=0.5)
    arrived = clock.time - 0.4
    setting = await hardware.plan_and_set(lambda: hardware.connecting([ONE]), arrived)
    await setting
    assert clock.time - arrived == pytest.approx(0.5, abs=0.01)
