"""The optical executor against the emulated switch over loopback TCP."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.events import DeviceConnected, DeviceDisconnected, StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect
from tests.support.controller.executor_contract import TIMEOUT, Bench, SwitchThread, bench, circuits
from tests.support.controller.ssh_server import free_port
from tests.support.waiting import eventually


@pytest.fixture
def lab() -> Iterator[tuple[SwitchThread, Bench]]:
    """Yield a switch, and an executor that has connected to it."""
    switch = SwitchThread(free_port())
    try:
        with bench(switch.port) as found:
            assert found.next(DeviceConnected) == DeviceConnected("ocs1")
            yield switch, found
            found.quiet()
    finally:
        switch.stop()


def test_executor_sends_one_delete_and_one_connect_per_decision(lab):
    switch, found = lab
    found.apply(CircuitChange(1, 1, (), circuits((9, 9), (10, 2), (11, 3))))
    found.answers(1)
    found.apply(
        CircuitChange(1, 2, circuits((9, 9), (10, 2), (11, 3)), ()),
        CircuitChange(2, 1, (), circuits((1, 12), (13, 4), (14, 5))),
        CircuitChange(3, 1, (), circuits((6, 7))),
    )
    answers = found.answers(3)
    assert all(isinstance(event, StepConfirmed) and event.elapsed > 0 for event in answers.values())
    assert switch.commands == [
        "ent 10009&10010&10011,20009&20002&20003",
        "dlt 10009&10010&10011,20009&20002&20003",
        "ent 10001&10013&10014&10006,20012&20004&20005&20007",
    ]
    assert switch.lit == {(1, 12), (13, 4), (14, 5), (6, 7)}


def test_denied_port_fails_only_its_own_reservation(lab):
    switch, found = lab
    switch.do(lambda: switch.switch.faults.refused_inputs.add(5))
    found.apply(
        CircuitChange(1, 1, (), circuits((1, 2), (3, 4))),
        CircuitChange(2, 1, (), circuits((6, 6), (5, 8))),
        CircuitChange(3, 1, (), circuits((7, 9))),
    )
    answers = found.answers(3)
    assert {key: type(event) for key, event in answers.items()} == {
        (1, 1): StepConfirmed,
        (2, 1): StepFailed,
        (3, 1): StepConfirmed,
    }
    assert answers[2, 1].reason.startswith("optical switch ocs1: ")
    assert {(1, 2), (3, 4), (7, 9)} <= switch.lit
    # Once in the bulk command, once in its half, and once in the command for this reservation alone.
    [(driver, code)] = found.refusals
    assert driver == "tl1" and code in answers[2, 1].reason and found.refusals[driver, code] == 3


@pytest.mark.parametrize("partial", [False, True], ids=["nothing done", "half done"])
def test_undo_after_a_denial_removes_partial_circuits(lab, partial):
    switch, found = lab
    switch.do(
        lambda: (switch.switch.faults.refused_outputs.add(8), setattr(switch.switch.faults, "partial_bulk", partial))
    )
    found.apply(CircuitChange(1, 1, (), circuits((1, 2))), CircuitChange(2, 1, (), circuits((3, 4), (5, 8), (6, 9))))
    answers = found.answers(2)
    assert isinstance(answers[1, 1], StepConfirmed)
    assert isinstance(answers[2, 1], StepFailed)
    found.apply(CircuitChange(2, 2, circuits((3, 4), (5, 8), (6, 9)), ()))
    assert isinstance(found.answers(1)[2, 2], StepConfirmed)
    assert switch.lit == {(1, 2)}


def test_disconnect_of_absent_circuits_is_confirmed(lab):
    switch, found = lab
    found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
    found.answers(1)
    found.apply(CircuitChange(1, 2, circuits((1, 2), (3, 4)), ()), CircuitChange(2, 2, circuits((5, 6)), ()))
    assert {type(event) for event in found.answers(2).values()} == {StepConfirmed}
    assert switch.lit == set()


def test_empty_step_is_confirmed(lab):
    _, found = lab
    found.apply(CircuitChange(1, 1))
    found.answers(1)


def test_executor_runs_decisions_in_order(lab):
    switch, found = lab
    for step in range(1, 9):
        pair = circuits((1, 2))
        found.apply(CircuitChange(1, step, *((), pair) if step % 2 else (pair, ())))
    assert list(found.answers(8)) == [(1, step) for step in range(1, 9)]
    assert switch.lit == set()


def test_executor_merges_steps_while_the_switch_is_busy(lab):
    switch, found = lab
    switch.do(lambda: setattr(switch.switch.faults, "answer_delay", 0.2))
    found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
    eventually(lambda: len(switch.commands) == 1)
    for number in (2, 3, 4):
        found.apply(CircuitChange(number, 1, (), circuits((2 * number, 2 * number + 1))))
    assert set(found.answers(4)) == {(number, 1) for number in (1, 2, 3, 4)}
    assert switch.commands[1:] == ["ent 10004&10006&10008,20005&20007&20009"]


def test_cut_session_fails_each_step_once_and_reads_circuits_again(lab):
    switch, found = lab
    switch.do(lambda: setattr(switch.switch.faults, "cut_before_answer", True))
    found.apply(CircuitChange(1, 1, (), circuits((1, 2))), CircuitChange(2, 1, (), circuits((3, 4))))
    found.apply(CircuitChange(3, 1, (), circuits((5, 6))))
    events = [found.events.get(timeout=TIMEOUT) for _ in range(4)]
    failed = [(e.reservation, e.step) for e in events if isinstance(e, StepFailed)]
    assert sorted(failed) == [(1, 1), (2, 1), (3, 1)]
    assert [type(e) for e in events if not isinstance(e, StepFailed)] == [DeviceDisconnected]
    switch.do(lambda: setattr(switch.switch.faults, "cut_before_answer", False))
    up = found.next(DeviceConnected)
    # The third may have gone out together with the other two.
    assert {CrossConnect("ocs1", c.input, c.output) for c in switch.switch.circuits} == up.circuits
    assert up.circuits >= set(circuits((1, 2), (3, 4))), "circuits connected before the cut"


def test_executor_fails_steps_of_absent_switch_until_it_appears():
    port = free_port()
    with bench(port) as found:
        down = found.next(DeviceDisconnected)
        assert "not reachable" in down.reason
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        answer = found.answers(1)[1, 1]
        assert isinstance(answer, StepFailed)
        assert answer.reason == f"optical switch ocs1: {down.reason}"
        switch = SwitchThread(port)
        try:
            found.next(DeviceConnected)
            found.apply(CircuitChange(1, 2, (), circuits((1, 2))))
            assert isinstance(found.answers(1)[1, 2], StepConfirmed)
        finally:
            switch.stop()


def test_executor_disconnects_silent_switch_after_the_timeout():
    switch = SwitchThread(free_port())
    try:
        with bench(switch.port, timeout=1.0) as found:
            found.next(DeviceConnected)
            switch.do(lambda: setattr(switch.switch.faults, "silent", True))
            started = time.monotonic()
            found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
            assert isinstance(found.answers(1)[1, 1], StepFailed)
            assert time.monotonic() - started >= 1.0
            found.next(DeviceDisconnected)
            switch.do(lambda: setattr(switch.switch.faults, "silent", False))
            event = found.events.get(timeout=TIMEOUT)
            while isinstance(event, DeviceDisconnected):
                event = found.events.get(timeout=TIMEOUT)
            assert event == DeviceConnected("ocs1")
    finally:
        switch.stop()


def test_executor_reports_existing_circuits():
    switch = SwitchThread(free_port())
    try:
        for _ in range(2):
            with bench(switch.port) as found:
                first = found.next(DeviceConnected)
                if not first.circuits:
                    found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
                    found.answers(1)
        assert first.circuits == set(circuits((1, 2))), "circuits remain when the controller ends"
    finally:
        switch.stop()
