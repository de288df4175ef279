"""The clock on the controller's steps: every step exists, and the time of a step excludes the steps within it."""

from __future__ import annotations

import importlib
import time
from functools import reduce

import pytest

from benchmarks.control_plane.step_clock import STEPS, StepClock


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_a_function_of_the_controller(step: str) -> None:
    module, name = STEPS[step]
    assert callable(reduce(getattr, name.split("."), importlib.import_module(f"blast_controller.{module}")))


def test_time_of_step_excludes_inner_steps() -> None:
    clock = StepClock()

    def work() -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass

    inner = clock.wrapped("inner", work)
    clock.wrapped("outer", lambda: (inner(), inner()))()
    totals = clock.totals()
    assert totals["inner"]["calls"] == 2 and totals["outer"]["calls"] == 1
    assert totals["inner"]["cpu_ms"] >= 40 > totals["outer"]["cpu_ms"]
