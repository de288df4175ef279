"""The core's machine for a long time, without Hypothesis: `python -m tests.property.long_run --steps 1000000`.

Every episode has a seed of its own, so that a failure names the one command that shows it again. At the end comes a
table of how often each fault met each phase of a reservation or part.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.core_machine import ACTIONS, OFTEN, TROUBLES, CoreMachine
from tests.support.dice import SeededDice

STEPS = 60
MOST_BYTES = 2 << 30
MOST_SECONDS = 120
"""What an episode may take; usually it is a tenth of a second."""
Counts = Counter[tuple[str, str]]


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


class Endless(Exception):
    """An episode takes so long that the controller must be going round in circles."""


def bound_episodes() -> None:
    """Let an episode that has no end fail by itself, before it takes the machine with it."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, _ring)


def _ring(_number: int, _frame: object) -> None:
    raise Endless


def table(counts: Counts) -> str:
    """The counts as faults by phases."""
    phases = sorted({phase for phase, _ in counts})
    faults = sorted({fault for _, fault in counts})
    width = max(map(len, faults), default=0)
    heads = [phase.replace("reservation ", "r ").replace("part ", "p ") for phase in phases]
    lines = [" " * width + "".join(f" {head:>13}" for head in heads)]
    lines += [f"{fault:<{width}}" + "".join(f" {counts[p, fault] or '-':>13}" for p in phases) for fault in faults]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so much time at the latest")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    parser.add_argument("--jobs", type=int, default=1, help="processes to share the work")
    parser.add_argument("--trace", action="store_true", help="play one episode and print every action")
    options = parser.parse_args()
    if options.trace:
        episode(options.seed, Counter(), trace=True)
        return 0
    counts: Counts = Counter()
    started, done, failures = time.monotonic(), 0, 0
    seeds = range(options.seed, options.seed + -(-options.steps // STEPS))
    with multiprocessing.Pool(options.jobs, bound_episodes) as pool:
        for played in pool.imap_unordered(play, seeds, chunksize=10):
            done += STEPS
            counts += played.counts
            if played.failure:
                failures += 1
                print(played.failure)
                print(f"failed: python -m tests.property.long_run --trace --seed {played.seed}", flush=True)
            if done % (500 * STEPS) == 0:
                print(f"{done} steps, {failures} failures", file=sys.stderr, flush=True)
            if time.monotonic() - started > options.seconds:
                break
    print(f"{done} steps in episodes of {STEPS}, {time.monotonic() - started:.0f} s, {failures} failures")
    print(table(counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
