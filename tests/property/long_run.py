"""The core's machine for a long time, without Hypothesis: `python -m tests.property.long_run --steps 1000000`.

Every episode has a seed of its own, so that a failure names the one command that shows it again.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.support.core_machine import ACTIONS, CoreMachine
from tests.support.dice import SeededDice

STEPS = 60


def episode(seed: int, counts: Counter[tuple[str, str]], steps: int = STEPS, trace: bool = False) -> int:
    """Play one episode; how many steps it had."""
    dice = SeededDice(seed)
    machine = CoreMachine(dice, counts)
    machine.check()
    # Fewer kinds of action let each of them get further.
    left_out = dice.pick([1, 1, 3])
    actions = [action for action in ACTIONS if dice.number(0, 5) >= left_out] or list(ACTIONS)
    for _ in range(steps):
        action = dice.pick(actions)
        if trace:
            print(action, flush=True)
        getattr(machine, action)(dice)
        machine.check()
    machine.finish()
    return steps


def table(counts: Counter[tuple[str, str]]) -> str:
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
    parser.add_argument("--trace", action="store_true", help="print every action, for one episode")
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    started, done, seed, failures = time.monotonic(), 0, options.seed, 0
    while done < (1 if options.trace else options.steps) and time.monotonic() - started < options.seconds:
        try:
            done += episode(seed, counts, trace=options.trace)
        except Exception:  # noqa: BLE001 every failure is wanted, not only the first
            failures += 1
            done += STEPS
            traceback.print_exc()
            print(f"failed: python -m tests.property.long_run --trace --seed {seed}", flush=True)
            if failures >= 5:
                break
        seed += 1
    print(f"{done} steps in {seed - options.seed} episodes, {time.monotonic() - started:.0f} s, {failures} failures")
    print(table(counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
