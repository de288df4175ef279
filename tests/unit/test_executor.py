"""The optical executor against the emulated switch over loopback TCP."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.events import DeviceDown, DeviceUp, StepConfirmed, StepFailed
from blast_controller.optical.executor import OpticalExecutor
from tests.support.executor_contract import (
    PATIENCE,
    Bench,
    ExecutorContract,
    SwitchThread,
    bench,
    circuits,
    unused_port,
)


class TestByTcp(ExecutorContract):
    @pytest.fixture
    def lab(self) -> Iterator[tuple[SwitchThread, Bench]]:
        switch = SwitchThread(unused_port())
        try:
            with bench(switch.port) as found:
                assert found.next(DeviceUp) == DeviceUp("ocs1")
                yield switch, found
                found.quiet()
        finally:
            switch.stop()


def test_an_absent_switch_fails_steps_with_a_sentence_and_is_seen_when_it_appears():
    port = unused_port()
    with bench(port) as found:
        down = found.next(DeviceDown)
        assert "not reachable" in down.reason
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        answer = found.answers(1)[1, 1]
        assert isinstance(answer, StepFailed)
        assert answer.reason == f"optical switch ocs1: {down.reason}"
        switch = SwitchThread(port)
        try:
            found.next(DeviceUp)
            found.apply(CircuitChange(1, 2, (), circuits((1, 2))))
            assert isinstance(found.answers(1)[1, 2], StepConfirmed)
        finally:
            switch.stop()


def test_a_silent_switch_is_given_up_after_the_timeout():
    switch = SwitchThread(unused_port())
    try:
        with bench(switch.port, timeout=1.0) as found:
            found.next(DeviceUp)
            switch.do(lambda: setattr(switch.switch.faults, "silent", True))
            started = time.monotonic()
            found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
            assert isinstance(found.answers(1)[1, 1], StepFailed)
            assert time.monotonic() - started >= 1.0
            found.next(DeviceDown)
            switch.do(lambda: setattr(switch.switch.faults, "silent", False))
            event = found.events.get(timeout=PATIENCE)
            while isinstance(event, DeviceDown):
                event = found.events.get(timeout=PATIENCE)
            assert event == DeviceUp("ocs1")
    finally:
        switch.stop()


def test_circuits_that_are_there_already_are_reported():
    switch = SwitchThread(unused_port())
    try:
        for _ in range(2):
            with bench(switch.port) as found:
                first = found.next(DeviceUp)
                if not first.circuits:
                    found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
                    found.answers(1)
        assert first.circuits == set(circuits((1, 2))), "they stay when the controller goes"
    finally:
        switch.stop()


def test_an_executor_without_switches_stops():
    executor = OpticalExecutor([], print, print)
    executor.start()
    executor.stop()
