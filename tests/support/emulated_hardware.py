"""Emulated hardware for tests: a clock that only sleeping moves, and light paths that are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from optical_switch.emulator.crossbar import Crossbar
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.timing import Clock
from optical_switch.model import Circuit

PORTS = 4


class HandClock:
    """A time that moves when a test sets it, or when the hardware sleeps."""

    def __init__(self) -> None:
        self.time = 100.0

    async def sleep(self, seconds: float) -> None:
        self.time += max(seconds, 0.00001)
        await asyncio.sleep(0)  # a turn of the event loop, as every sleep

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep)


class RecordedPaths:
    """Light paths that change at the end of `apply`, after some steps of the event loop, unless `error` is set."""

    def __init__(self, steps: int = 1) -> None:
        self.lit: set[Circuit] = set()
        self.calls: list[tuple[tuple[Circuit, ...], tuple[Circuit, ...]]] = []
        self.steps = steps
        self.error: BaseException | None = None

    async def apply(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        for _ in range(self.steps):
            await asyncio.sleep(0)  # setting takes some turns of the event loop
        if self.error is not None:
            raise self.error
        assert set(removed) <= self.lit and self.lit.isdisjoint(set(added) - set(removed))
        self.lit = self.lit - set(removed) | set(added)
        self.calls.append((tuple(removed), tuple(added)))


def hardware_of(paths: RecordedPaths, clock: HandClock | None = None, **options: Any) -> OpticalHardware:
    """Return hardware with `PORTS` inputs and outputs."""
    options = {"connect_seconds": 0.0, "clock": (clock or HandClock()).clock, **options}
    return OpticalHardware(Crossbar(PORTS, PORTS), paths.apply, **options)


async def set_all(hardware: OpticalHardware, circuits: Sequence[Circuit], removed: Sequence[Circuit] = ()) -> None:
    """Set circuits, and return when they are set."""
    await (await hardware.plan_and_set(lambda: hardware.connecting(circuits, removed)))
