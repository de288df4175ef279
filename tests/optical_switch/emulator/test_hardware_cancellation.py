"""Every change of the emulated hardware ends, whatever `apply` raises and whenever it is cancelled."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal, ends
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit, Port
from tests.support.emulated_hardware import PORTS, HandClock, RecordedPaths, hardware_of, set_all
from tests.support.waiting import eventually_async

ERRORS = (None, OSError, TimeoutError, asyncio.CancelledError, partial(RefusalError, SwitchRefusal.FAILED, "refused"))


@dataclass(frozen=True)
class Attempt:
    """A change of one circuit, begun and cancelled after some steps of the event loop; None: it is not cancelled."""

    circuit: Circuit
    begins: int
    cancelled: int | None
    only_setting: bool
    error: Callable[[], BaseException] | None


ATTEMPTS = st.builds(
    Attempt,
    st.builds(Circuit, st.integers(1, PORTS), st.integers(1, PORTS)),
    st.integers(0, 6),
    st.none() | st.integers(0, 12),
    st.booleans(),
    st.sampled_from(ERRORS),
)


class FickleSwitch:
    """Hardware whose light paths fail with the error of the change in progress, and the outcomes of all its changes."""

    def __init__(self, stuck: set[int]) -> None:
        self.paths = RecordedPaths(steps=2)
        self.hardware = hardware_of(self.paths, HandClock(), connect_seconds=0.01)
        self.hardware.faults.stuck_inputs = stuck
        self.planned = 0
        self.outcomes: list[RefusalError | None] = []

    async def attempt(self, attempt: Attempt) -> None:
        await _steps(attempt.begins)
        setting = await self.hardware.plan_and_set(lambda: self._plan(attempt))
        if attempt.only_setting and attempt.cancelled is not None:
            await _steps(attempt.cancelled)
            setting.cancel()
        await setting

    def _plan(self, attempt: Attempt) -> CrossbarChange:
        taken = set(ends(attempt.circuit))
        removed = [circuit for circuit in self.hardware.crossbar.circuits if taken.intersection(ends(circuit))]
        change = self.hardware.connecting([attempt.circuit], removed)
        self.paths.error = attempt.error() if attempt.error else None
        self.planned += 1
        return replace(change, done=self.outcomes.append)


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)  # one step of the change


async def check(attempts: Sequence[Attempt], stuck: set[int]) -> None:
    switch = FickleSwitch(stuck)
    tasks = [asyncio.create_task(switch.attempt(attempt)) for attempt in attempts]
    for task, attempt in zip(tasks, attempts, strict=True):
        if attempt.cancelled is not None and not attempt.only_setting:
            await _steps(attempt.cancelled)
            task.cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not switch.hardware.busy and not switch.hardware.tuning
    assert len(switch.outcomes) == switch.planned
    assert set(switch.hardware.crossbar.circuits) == switch.paths.lit
    switch.paths.error = None
    await works(switch.hardware, switch.paths)


async def works(hardware: OpticalHardware, paths: RecordedPaths) -> None:
    """Check that the next change is carried out."""
    hardware.faults.stuck_inputs = set()
    async with asyncio.timeout(10):
        await set_all(hardware, [Circuit(1, 1)], removed=hardware.crossbar.circuits)
    assert paths.lit == {Circuit(1, 1)} == set(hardware.crossbar.circuits)


@given(st.lists(ATTEMPTS, min_size=1, max_size=5), st.sets(st.integers(1, PORTS), max_size=1))
@settings(max_examples=300, deadline=None)
def test_every_change_ends_and_light_equals_crossbar(attempts: list[Attempt], stuck: set[int]) -> None:
    asyncio.run(check(attempts, stuck))


async def test_change_cancelled_before_its_first_step_ends() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    outcomes: list[RefusalError | None] = []
    setting = await hardware.plan_and_set(lambda: replace(hardware.connecting([Circuit(1, 1)]), done=outcomes.append))
    setting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await setting
    [outcome] = outcomes
    assert outcome is not None and outcome.text == "the operation failed: CancelledError"
    await works(hardware, paths)


async def test_outcome_is_reported_before_the_next_change_is_planned() -> None:
    hardware = hardware_of(RecordedPaths())
    order: list[str] = []

    def plan(name: str, circuit: Circuit) -> CrossbarChange:
        order.append(f"plan {name}")
        return replace(hardware.connecting([circuit]), done=lambda _: order.append(f"done {name}"))

    async def change(name: str, circuit: Circuit) -> None:
        await (await hardware.plan_and_set(lambda: plan(name, circuit)))
        order.append(f"answer {name}")

    await asyncio.gather(change("one", Circuit(1, 1)), change("two", Circuit(2, 2)))
    assert order.index("done one") < order.index("plan two")
    assert order.index("done one") < order.index("answer one")
    assert order.index("done two") < order.index("answer two")


async def test_change_in_background_is_kept_alive() -> None:
    """The event loop holds tasks only weakly: a change that nothing awaits must not be collected."""
    paths = RecordedPaths(steps=0)
    waited: list[weakref.ref[asyncio.Future[None]]] = []

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        if added:
            # Only the task that waits for it refers to this future.
            future = asyncio.get_running_loop().create_future()
            waited.append(weakref.ref(future))
            await future
        await paths.apply(removed, added)

    hardware = hardware_of(paths)
    hardware.apply = apply
    await hardware.plan_and_set(lambda: hardware.connecting([Circuit(1, 1)]))
    await eventually_async(lambda: waited, "the light paths to be set")
    gc.collect()
    future = waited[0]()
    assert future is not None
    future.set_result(None)
    await hardware.reset()
    assert [added for _, added in paths.calls] == [(Circuit(1, 1),), ()]


async def test_error_of_done_does_not_stop_the_switch() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context["exception"]))

    def done(_refusal: RefusalError | None) -> None:
        raise ValueError("an error of the agent")

    await (await hardware.plan_and_set(lambda: replace(hardware.connecting([Circuit(2, 2)]), done=done)))
    [error] = errors
    assert isinstance(error, ValueError)
    await works(hardware, paths)


async def test_plan_that_raises_lets_the_next_change_begin() -> None:
    paths = RecordedPaths()
    hardware = hardware_of(paths)

    def plan() -> CrossbarChange:
        raise RefusalError(SwitchRefusal.IN_USE, "no", [Port("in", 1)])

    with pytest.raises(RefusalError):
        await hardware.plan_and_set(plan)
    await works(hardware, paths)
