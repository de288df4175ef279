"""The optical executor with a switch whose answer does not mean that a change is in effect: it reads and listens."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import (
    CircuitFailed,
    DeviceConnected,
    DeviceDisconnected,
    DeviceEvent,
    LossMeasured,
    StepConfirmed,
    StepFailed,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.optical import executor as executor_module
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from optical_switch.errors import RefusedError
from optical_switch.model import Alarm, Circuit, CircuitReading, CircuitState, LossReading, PowerReading
from optical_switch.session import BatchResult, Capabilities, Notice

TIMEOUT = 30.0
DEADLINE = 0.3
"""Seconds of a step, for tests in which it passes."""
LONG = 1e6
"""Seconds of a step, for tests in which it must not pass."""

Lists = Callable[[int], list[CircuitReading]]
"""The list of a switch at its n-th reading after a batch, from 1."""


@dataclass
class ListingSwitch:
    """A switch that accepts everything, and lists the circuits that a test gives."""

    lists: Lists
    losses: tuple[LossReading, ...] = ()
    result: BatchResult = field(default_factory=BatchResult)
    batches: list[tuple[tuple[Circuit, ...], tuple[Circuit, ...]]] = field(default_factory=list)
    readings: int = 0
    listener: Callable[[Notice], None] | None = None
    read_again: asyncio.Event | None = None


class ListingSession:
    """A session to a `ListingSwitch`."""

    def __init__(self, switch: ListingSwitch) -> None:
        self._switch = switch
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(confirms=False, light="states", measures_loss=bool(self._switch.losses))

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        self._switch.listener = listener

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def wait_closed(self) -> str:
        return await asyncio.shield(self._ended)

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        self._switch.batches.append((tuple(deletes), tuple(adds)))
        self._switch.readings = 0
        return self._switch.result

    async def read_circuits(self) -> list[CircuitReading]:
        if not self._switch.batches:
            return []
        self._switch.readings += 1
        return self._switch.lists(self._switch.readings)

    async def read_powers(self) -> list[PowerReading]:
        return []

    async def read_losses(self) -> Sequence[LossReading]:
        return self._switch.losses


@contextlib.contextmanager
def executor_of(
    switch: ListingSwitch, seconds: float = LONG
) -> Iterator[tuple[OpticalExecutor, queue.Queue[DeviceEvent]]]:
    events: queue.Queue[DeviceEvent] = queue.Queue()
    failures: list[BaseException] = []
    settings = SwitchSettings("ocs1", "listing", lambda: ListingSession(switch), seconds)
    executor = OpticalExecutor([settings], events.put, failures.append)
    executor.start()
    try:
        assert events.get(timeout=TIMEOUT) == DeviceConnected("ocs1")
        yield executor, events
    finally:
        executor.stop()
    assert failures == []


def change(*connect: tuple[int, int], disconnect: Sequence[tuple[int, int]] = ()) -> SetCircuits:
    def of(pairs: Sequence[tuple[int, int]]) -> tuple[CrossConnect, ...]:
        return tuple(CrossConnect("ocs1", *pair) for pair in pairs)

    return SetCircuits("ocs1", (CircuitChange(1, 1, of(disconnect), of(connect)),))


def listed(*circuits: tuple[int, int], state: CircuitState = CircuitState.CONNECTED) -> list[CircuitReading]:
    return [
        CircuitReading(Circuit(*circuit), state, "HAL error" if state is CircuitState.FAILED else "")
        for circuit in circuits
    ]


@pytest.mark.parametrize(("severity", "shown"), [("", "failed"), ("MJ", "MJ failed")])
@pytest.mark.parametrize(("cleared", "end"), [(False, ""), (True, " is over")])
def test_alarm_is_logged_with_its_severity_if_any(
    severity: str, shown: str, cleared: bool, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    switch = ListingSwitch(lambda _: [])
    with executor_of(switch):
        assert switch.listener is not None
        switch.listener(Alarm(None, "9B", "failed", severity, cleared))
    assert f"optical switch ocs1: {shown} at 9B{end}" in caplog.messages


def test_list_that_lags_is_read_until_it_shows_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "FIRST_PAUSE", 1e-4)
    switch = ListingSwitch(lambda n: listed((1, 2), (3, 4)) if n >= 4 else listed((1, 2), (5, 6)))
    with executor_of(switch) as (executor, events):
        executor.apply(change((1, 2), (3, 4), disconnect=[(5, 6)]))
        assert isinstance(events.get(timeout=TIMEOUT), StepConfirmed)
    assert switch.readings == 4


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        (listed((1, 2)), "input 3 to output 4: the switch lists it as absent"),
        (listed((1, 2), (4, 3)), "input 3 to output 4: the switch lists it as absent"),
        (
            [*listed((1, 2)), *listed((3, 4), state=CircuitState.TUNING)],
            "input 3 to output 4: the switch lists it as tuning",
        ),
        (listed((1, 2), (3, 4), (5, 6)), "input 5 to output 6: the switch still lists it"),
    ],
    ids=["missing", "reversed", "tuning", "not removed"],
)
def test_change_that_the_list_never_shows_fails_at_the_deadline(lists: list[CircuitReading], reason: str) -> None:
    with executor_of(ListingSwitch(lambda _: lists), DEADLINE) as (executor, events):
        executor.apply(change((1, 2), (3, 4), disconnect=[(5, 6)]))
        answer = events.get(timeout=TIMEOUT)
        assert isinstance(answer, StepFailed) and reason in answer.reason


def test_failed_circuit_fails_at_once() -> None:
    switch = ListingSwitch(lambda _: [*listed((1, 2)), *listed((3, 4), state=CircuitState.FAILED)])
    with executor_of(switch) as (executor, events):
        executor.apply(change((1, 2), (3, 4)))
        answer = events.get(timeout=TIMEOUT)
        assert isinstance(answer, StepFailed) and "HAL error" in answer.reason


def test_report_of_the_switch_ends_the_pause_between_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "FIRST_PAUSE", LONG)

    def lists(reading: int) -> list[CircuitReading]:
        connected = listed((1, 2))
        if reading == 1:
            asyncio.get_running_loop().call_soon(switch.listener, connected[0])
        return connected if reading > 1 else listed((1, 2), state=CircuitState.TUNING)

    switch = ListingSwitch(lists)
    with executor_of(switch) as (executor, events):
        executor.apply(change((1, 2)))
        assert isinstance(events.get(timeout=TIMEOUT), StepConfirmed)


def test_loss_is_reported_before_the_confirmation() -> None:
    losses = (LossReading(Circuit(1, 2), 1.4, 0.1), LossReading(Circuit(7, 8), 9.0))
    with executor_of(ListingSwitch(lambda _: listed((1, 2)), losses)) as (executor, events):
        for _ in losses:
            events.get(timeout=TIMEOUT)
        executor.apply(change((1, 2)))
        assert events.get(timeout=TIMEOUT) == LossMeasured(CrossConnect("ocs1", 1, 2), 1.4, 0.1)
        assert isinstance(events.get(timeout=TIMEOUT), StepConfirmed)


def test_circuit_that_fails_later_is_reported() -> None:
    switch = ListingSwitch(lambda _: listed((1, 2)))
    with executor_of(switch) as (executor, events):
        executor.apply(change((1, 2)))
        assert isinstance(events.get(timeout=TIMEOUT), StepConfirmed)
        assert switch.listener is not None
        switch.listener(CircuitReading(Circuit(1, 2), CircuitState.FAILED, "output 2 has failed"))
        assert events.get(timeout=TIMEOUT) == CircuitFailed(CrossConnect("ocs1", 1, 2), "output 2 has failed")
        switch.listener(LossReading(Circuit(1, 2), 7.5, 0.2))
        assert events.get(timeout=TIMEOUT) == LossMeasured(CrossConnect("ocs1", 1, 2), 7.5, 0.2)


def test_losses_of_the_circuits_that_are_set_are_reported_when_the_session_opens() -> None:
    switch = ListingSwitch(lambda _: [], (LossReading(Circuit(1, 2), 1.4, 0.1),))
    with executor_of(switch) as (_, events):
        assert events.get(timeout=TIMEOUT) == LossMeasured(CrossConnect("ocs1", 1, 2), 1.4, 0.1)


def test_named_refusal_fails_only_its_change() -> None:
    switch = ListingSwitch(
        lambda _: listed((1, 2)), result=BatchResult({Circuit(3, 4): RefusedError("invalid", "in use")})
    )
    with executor_of(switch) as (executor, events):
        executor.apply(
            SetCircuits(
                "ocs1",
                (
                    CircuitChange(1, 1, (), (CrossConnect("ocs1", 1, 2),)),
                    CircuitChange(2, 1, (), (CrossConnect("ocs1", 3, 4),)),
                ),
            )
        )
        answers = {event.reservation: event for event in (events.get(timeout=TIMEOUT) for _ in range(2))}
        assert isinstance(answers[1], StepConfirmed) and isinstance(answers[2], StepFailed)
    assert len(switch.batches) == 1
    assert not isinstance(answers[1], DeviceDisconnected)
