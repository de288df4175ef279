"""The core's state machine (`tests/support/controller/core_machine.py`) without Hypothesis: ten times as fast.

The phases of the table are those of reservations and parts.
"""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.soak.episodes import Counts, Effort, played, table
from tests.support.controller.core_machine import ACTIONS, OFTEN, TROUBLES, CoreMachine
from tests.support.dice import SeededDice

STEPS = 60
MAX_SECONDS = 120
"""After which an episode has hung; it usually takes a tenth of a second."""


def episode(
    seed: int,
    counts: Counts,
    steps: int = STEPS,
    trace: bool = False,
    make: Callable[[SeededDice, Counts], CoreMachine] = CoreMachine,
) -> None:
    """Play one episode, which fails by an exception."""
    dice = SeededDice(seed)
    machine = make(dice, counts)
    machine.check()
    # Fewer kinds of action let each of them get further.
    left_out = dice.pick([1, 1, 3])
    actions = [action for action in (*ACTIONS, *OFTEN) if dice.number(0, 5) >= left_out]
    for _ in range(steps):
        possible = [action for action in actions if machine.enabled(action)]
        if machine.in_transition and (machine.is_repairing or dice.number(0, 1)):
            # Phases that soon pass meet enough faults only if some come at once.
            possible = [action for action in TROUBLES if machine.enabled(action)]
        action = dice.pick(possible or ["connect_all" if machine.world.running else "start"])
        if trace:
            print(action, flush=True)
        getattr(machine, action)(dice)
        machine.check()
    machine.finish()


@dataclass(frozen=True)
class Played:
    """The counts of one episode, and its failure, if any."""

    seed: int
    counts: Counts
    failure: str | None = None


def play(seed: int) -> Played:
    """Run an episode, whose failure is kept for the report."""
    counts: Counts = Counter()
    signal.alarm(MAX_SECONDS)
    try:
        episode(seed, counts)
    except Exception:  # noqa: BLE001 every failure is wanted, not only the first
        return Played(seed, counts, traceback.format_exc())
    finally:
        signal.alarm(0)
    return Played(seed, counts)


def run(effort: Effort) -> int:
    """Play episodes up to the number of steps, print the faults and phases that met, and count the failures."""
    counts, done, failures = Counts(), 0, 0
    episodes = -(-effort.units // STEPS)
    for one in played(play, range(effort.seed, effort.seed + episodes), effort):
        done, counts, failures = done + STEPS, counts + one.counts, failures + (one.failure is not None)
    print(f"core: {done} steps in episodes of {STEPS}, {failures} failures\n{table(counts)}")
    return failures


def trace(seed: int) -> int:
    """Play one episode and print each action; its failure is raised."""
    episode(seed, Counter(), trace=True)
    return 0
