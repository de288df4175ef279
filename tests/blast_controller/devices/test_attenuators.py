"""Attenuators of an optical switch: set in each session before the first circuit, or the session ends."""

from __future__ import annotations

import contextlib
import queue
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    DeviceEvent,
    StepConfirmed,
    StepFailed,
)
from blast_controller.optical.attenuation import output_levels
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from optical_switch.errors import DeviceBusyError, RefusedError, UnreachableError
from optical_switch.model import Circuit, PortDescription
from optical_switch.session import BatchResult, Capabilities, SwitchSession
from tests.blast_controller.devices.test_executor_readings import ListingSession, ListingSwitch, change, listed
from tests.support.controller.core import make_fabric
from tests.support.controller.core_power import with_optics

TIMEOUT = 30.0
LEVELS = {1: -4.0, 2: None}


@dataclass
class AttenuatedSwitch(ListingSwitch):
    """A switch that notes in which order it is asked for what."""

    attenuates: bool = True
    error: Exception | None = None
    log: list[object] = field(default_factory=list)


class AttenuatedSession(ListingSession):
    """A session to an `AttenuatedSwitch`."""

    def __init__(self, switch: AttenuatedSwitch) -> None:
        super().__init__(switch)
        self._device = switch

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, attenuates=self._device.attenuates)

    async def close(self) -> None:
        self._device.log.append("close")

    def end(self) -> None:
        """End the session as the switch would."""
        self._ended.get_loop().call_soon_threadsafe(self._ended.set_result, "cut")

    async def read_ports(self) -> Sequence[PortDescription]:
        return []

    async def set_attenuation(self, levels: Mapping[int, float | None]) -> None:
        self._device.log.append(dict(levels))
        if self._device.error is not None:
            raise self._device.error

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        self._device.log.append(tuple(adds))
        return await super().apply(deletes, adds)


@dataclass
class Attempt:
    """An executor that has started to connect, and what came of it."""

    executor: OpticalExecutor
    events: queue.Queue[DeviceEvent]
    refused: Counter[tuple[str, str]]

    def next(self) -> DeviceEvent:
        return self.events.get(timeout=TIMEOUT)


@contextlib.contextmanager
def connecting(
    new_session: Callable[[], SwitchSession],
    may_write: Callable[[], bool] = lambda: True,
    levels: Mapping[int, float | None] = LEVELS,
) -> Iterator[Attempt]:
    failures: list[BaseException] = []
    events: queue.Queue[DeviceEvent] = queue.Queue()
    refused = Counter[tuple[str, str]]()
    settings = SwitchSettings("ocs1", "attenuating", new_session, TIMEOUT, levels=levels)
    executor = OpticalExecutor(
        [settings], events.put, failures.append, may_write, lambda *refusal: refused.update([refusal])
    )
    executor.start()
    try:
        yield Attempt(executor, events, refused)
    finally:
        executor.stop()
    assert failures == []


def switch_of(**values) -> AttenuatedSwitch:
    return AttenuatedSwitch(lambda _: listed((1, 2)), **values)


def test_levels_are_set_in_each_session_before_the_switch_is_connected() -> None:
    switch, sessions = switch_of(), []

    def new_session() -> AttenuatedSession:
        sessions.append(AttenuatedSession(switch))
        return sessions[-1]

    with connecting(new_session) as attempt:
        assert isinstance(attempt.next(), DeviceConnected)
        assert switch.log == [LEVELS]
        attempt.executor.apply(change((1, 2)))
        assert isinstance(attempt.next(), StepConfirmed)
        assert switch.log == [LEVELS, (Circuit(1, 2),)], "no step sets an attenuator"
        sessions[0].end()
        assert attempt.next() == DeviceDisconnected("ocs1", "cut")
        assert isinstance(attempt.next(), DeviceConnected)
        assert switch.log == [LEVELS, (Circuit(1, 2),), "close", LEVELS]


def test_attenuators_without_a_configured_range_stay_as_they_are() -> None:
    switch = switch_of()
    with connecting(lambda: AttenuatedSession(switch), levels={}) as attempt:
        assert isinstance(attempt.next(), DeviceConnected)
        assert switch.log == []


@pytest.mark.parametrize(
    ("error", "reason", "counted"),
    [
        (
            RefusedError("access-denied", "voa is read-only"),
            "access-denied: the attenuators are not set (voa is read-only): permit the user of the controller to set "
            "attenuators, or remove attenuator_range_db of the switch and restart the controller",
            "access-denied",
        ),
        (DeviceBusyError("ocs1 is locked by session 7: end that session"), "ocs1 is locked by session 7", None),
        (UnreachableError("no answer within 2 s"), "no answer within 2 s", None),
    ],
)
def test_switch_that_does_not_set_its_attenuators_is_not_connected(error, reason, counted) -> None:
    switch = switch_of(error=error)
    with connecting(lambda: AttenuatedSession(switch)) as attempt:
        event = attempt.next()
        assert isinstance(event, DeviceDisconnected) and event.reason.startswith(reason)
        assert switch.log[0] == LEVELS
        attempt.executor.apply(change((1, 2)))
        failed = attempt.next()
        assert isinstance(failed, StepFailed) and reason in failed.reason
        switch.error = None
        assert isinstance(attempt.next(), DeviceConnected), "tried again, as after any other failure to connect"
    assert switch.log[:2] == [LEVELS, "close"] and switch.batches == []
    assert {code for _, code in attempt.refused} == ({counted} if counted else set())


@pytest.mark.parametrize("of_a_kind_that_can", [True, False])
def test_switch_without_attenuators_is_not_connected(of_a_kind_that_can: bool) -> None:
    switch = switch_of(attenuates=False)
    with connecting(lambda: (AttenuatedSession if of_a_kind_that_can else ListingSession)(switch)) as attempt:
        event = attempt.next()
        assert isinstance(event, DeviceDisconnected)
        assert event.reason == (
            "the switch has no variable attenuators: enable them at the switch, or remove attenuator_range_db of the "
            "switch and restart the controller"
        )
    assert LEVELS not in switch.log


def test_controller_that_may_not_write_sets_no_attenuator() -> None:
    switch = switch_of()
    with connecting(lambda: AttenuatedSession(switch), may_write=lambda: False) as attempt:
        assert attempt.next() == DeviceDisconnected("ocs1", "another controller may be the leader now")
    assert LEVELS not in switch.log


def test_levels_are_those_of_the_receivers_and_none_at_splitters() -> None:
    fabric = with_optics(make_fabric(3, [2]), {"r2": 0.5}, overload={"r2": -3.0, "r3": -12.5}, attenuation=20.0)
    (splitter,) = fabric.splitters.values()
    outputs = {port.rack: port.output for port in fabric.ports_on("ocs1")}
    assert output_levels(fabric, "ocs1") == {
        splitter.input: None,
        outputs["r1"]: pytest.approx(10.0 - 1.0),
        outputs["r2"]: pytest.approx(-3.0 + 0.5 - 1.0),
        # From -14 to -12.5 dBm: too narrow for a monitor that may be off by 1 dB in either direction.
        outputs["r3"]: None,
    }
