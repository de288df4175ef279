"""The core's machine for a long time, without Hypothesis: `python -m tests.property.long_run --steps 1000000`.

A failure names the one command that shows it again; the phases of the table are those of reservations and parts.
"""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.core_machine import ACTIONS, OFTEN, TROUBLES, CoreMachine
from tests.support.dice import SeededDice
from tests.support.episodes import Counts, arguments, played, table

STEPS = 60
MOST_SECONDS = 120
"""What an episode may take; usually it is a tenth of a second."""


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
    """One episode's counts, and how it failed if it did."""

    seed: int
    counts: Counts
    failure: str | None = None


def play(seed: int) -> Played:
    """An episode whose failure is kept for the report."""
    counts: Counts = Counter()
    signal.alarm(MOST_SECONDS)
    try:
        episode(seed, counts)
    except Exception:  # noqa: BLE001 every failure is wanted, not only the first
        return Played(seed, counts, traceback.format_exc())
    finally:
        signal.alarm(0)
    return Played(seed, counts)


def main() -> int:
    parser = arguments("tests.property.long_run", __doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.trace:
        episode(options.seed, Counter(), trace=True)
        return 0
    started, counts, done, failures = time.monotonic(), Counts(), 0, 0
    for one in played(play, -(-options.steps // STEPS), options):
        done, counts, failures = done + STEPS, counts + one.counts, failures + (one.failure is not None)
    print(f"{done} steps in episodes of {STEPS}, {time.monotonic() - started:.0f} s, {failures} failures")
    print(table(counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
